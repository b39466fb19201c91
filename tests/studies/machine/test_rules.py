"""What the papers take for granted of messages and barriers, judged on recordings of the machines' programs."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypermon import studies
from hypermon.host.cli import cli

pytest.importorskip("amaranth")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the virtual board needs g++")

RULES = Path(studies.__file__).parent / "machine" / "rules"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The recording of an experiment, made once."""
    made = {}

    def make(*words):
        if words not in made:
            made[words] = tmp_path_factory.mktemp("machine") / "run"
            done = CliRunner().invoke(cli, ["machine", "run", *words, "-o", str(made[words])], catch_exceptions=False)
            assert done.exit_code == 0, done.output
        return made[words]

    return make


def judged(run, rules):
    """The verdict on each rule."""
    done = CliRunner().invoke(cli, ["check", str(run), str(rules), "--json"], catch_exceptions=False)
    return json.loads(done.stdout)["rules"]


CASES = [("messages", ("ipsc860", "path", "--nodes", "2", "--count", "1"), 100),
         ("barriers", ("asciq", "bsp", "--nodes", "4", "--count", "20", "--drop", "all"), 20)]


@pytest.mark.parametrize(("name", "words", "least"), CASES)
def test_the_claims_hold(recorded, name, words, least):
    rules = judged(recorded(*words), RULES / f"{name}.toml")
    assert {one["verdict"] for one in rules} == {"pass"}
    assert min(one["instances"] for one in rules) >= least


@pytest.mark.parametrize(("name", "words", "limit"), [(*CASES[0][:2], "10 ms"), (*CASES[1][:2], "1 ms"),
                                                      (*CASES[1][:2], "50 us")])
def test_a_claim_that_is_too_strong_fails(recorded, tmp_path, name, words, limit):
    text = (RULES / f"{name}.toml").read_text()
    assert text.count(f'= "{limit}"') == 1
    (tmp_path / "rules.toml").write_text(text.replace(f'= "{limit}"', '= "10 ns"'))
    rules = judged(recorded(*words), tmp_path / "rules.toml")
    assert [one["verdict"] for one in rules].count("fail") == 1
