"""FuseSoC generator: Verilog of HYPERMON by the options of `make verilog`, and a core that says where it is."""

import shlex
import sys
from pathlib import Path

import yaml
from hypermon.hdl.verilog import main


def generate(asked: Path) -> None:
    """``asked`` : FuseSoC's file. The output goes to the current folder."""
    said = yaml.safe_load(asked.read_text())
    name = said["parameters"]["file"]
    main(["-o", name, *shlex.split(said["parameters"]["options"])])
    core = {"name": said["vlnv"], "targets": {"default": {"filesets": ["rtl"]}},
            "filesets": {"rtl": {"files": [name], "file_type": "verilogSource"}}}
    Path(name).with_suffix(".core").write_text("CAPI=2:\n" + yaml.safe_dump(core))


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
