"""Continuous integration: what closes it, what does not, and what its last lines say."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def gates():
    """The modules of `.ci/`, which is no package."""
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        found = {}
        for name in ("retry", "gate"):
            spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
            sys.modules[name] = found[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found[name])
        yield found
    finally:
        sys.path.remove(str(ROOT / ".ci"))


@pytest.fixture
def gate(gates, tmp_path, monkeypatch):
    """Runs steps in an empty folder: gate(steps, **options) -> (passed, table, Gate)."""
    module = gates["gate"]
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    (tmp_path / "logs").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    # A link to the interpreter would lose the packages of its environment.
    (tmp_path / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)

    def run(*steps, **options):
        made = module.Gate([module.Step(*step) if isinstance(step, tuple) else step for step in steps], **options)
        passed = made.run()
        return passed, "\n".join(made.table()), made

    return run


#: A suite as the project's: the plugin that writes what failed.
CONFTEST = f"""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, {str(ROOT)!r})
from tests.outcomes import Outcomes, note_kind
from tests.patience import ending


def pytest_addoption(parser):
    parser.addoption("--outcomes", type=Path)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    note_kind(item, call)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with ending(0.3, item.nodeid):
        return (yield)


def pytest_configure(config):
    if not hasattr(config, "workerinput") and config.option.outcomes:
        config.pluginmanager.register(Outcomes(config.option.outcomes))
"""


@pytest.fixture
def suite(tmp_path):
    """A step that runs this test, whose first run does not pass: suite(what it does then, how often) -> step."""
    (tmp_path / "conftest.py").write_text(CONFTEST)

    def write(fault, tests=1, always=False, processes=0):
        first = "if not (marker := Path(__file__).with_name(f'ran-{n}')).exists():\n        marker.touch()"
        (tmp_path / "test_it.py").write_text(
            "import subprocess, socket, time\nfrom pathlib import Path\nimport pytest\n\n\n"
            f"@pytest.mark.parametrize('n', range({tests}))\ndef test_it(n):\n"
            f"    {'if True:' if always else first}\n        {fault}\n")
        command = f"{sys.executable} -m pytest -p no:cacheprovider -n {processes} --outcomes={{outcomes}} test_it.py"
        return "tests", command, 1

    return write


WAITS = ["raise TimeoutError('the page did not come')", "subprocess.run(['sleep', '9'], timeout=0.01)",
         "one = socket.create_server(('127.0.0.1', 0)); socket.create_server(one.getsockname())",
         "socket.create_connection(('127.0.0.1', 1))"]
DATA = ["assert b'ab' == b'ac'", "raise ValueError('block 3')", "raise AssertionError from TimeoutError()",
        "pytest.fail('3 events of 4')"]


@pytest.mark.parametrize("fault", WAITS)
def test_a_wait_that_passes_alone_is_forgiven_and_named(gate, suite, fault):
    passed, table, made = gate(suite(fault))
    assert passed
    assert [line.split(": ")[0] for line in made.unstable] == ["test_it.py::test_it[0]"]
    assert "unstable: test_it.py::test_it[0]: " in table
    assert table.endswith("1 passed, 0 failed")


@pytest.mark.parametrize("fault", DATA)
def test_data_are_not_forgiven(gate, suite, fault):
    passed, table, made = gate(suite(fault))
    assert (passed, made.unstable) == (False, [])
    assert "failed: test_it.py::test_it[0]" in table
    assert "passes alone, but data that were wrong once are not forgiven" in table
    assert table.endswith("0 passed, 1 failed")


def test_a_process_that_ended_is_no_wait(gate, suite):
    passed, table, _ = gate(suite("import os; os._exit(3)", processes=1))
    assert not passed
    assert "crashed while running 'test_it.py::test_it[0]'" in table


def test_what_fails_again_fails(gate, suite):
    passed, table, _ = gate(suite(WAITS[0], always=True))
    assert not passed
    assert "fails again: " in table


@pytest.mark.parametrize(("tests", "passes"), [(3, True), (4, False)])
def test_up_to_three_are_forgiven(gate, suite, tests, passes):
    passed, table, made = gate(suite(WAITS[0], tests))
    assert (passed, len(made.unstable)) == (passes, tests)
    assert table.count("unstable: ") == tests


def test_unstable_tests_of_several_steps_add_up(gates, gate):
    def again(*_):
        return gates["retry"].Retried(unstable=["one", "two"], forgiven=True)

    fails = "touch {outcomes}; exit 1"
    passed, table, _ = gate(("tests", fails, 1), ("more", fails, 1), again=again)
    assert not passed
    assert "4 unstable tests; up to three are forgiven" in table


def test_a_test_that_hangs_is_named_with_its_place(gate, suite):
    passed, table, _ = gate(suite("time.sleep(600)", always=True))
    assert not passed
    assert "test_it.py::test_it[0] hangs: no end after " in table
    assert "test_it.py:9" in table


def test_a_seed_is_named(gate, suite):
    assert "(seed 7)" in gate(suite("raise TimeoutError('repeat with HYPERMON_SEED=7')"))[1]


def test_a_test_that_is_skipped_is_counted_with_its_reason(gate, suite):
    assert "skipped: 2, no such program" in gate(suite("pytest.skip('no such program')", 2))[1]


def test_many_failures_are_no_chance(gate, suite):
    passed, table, made = gate(suite(WAITS[0], 13))
    assert (passed, made.unstable) == (False, [])
    assert "13 tests of 'tests', too many to run again" in table


def test_a_run_that_was_cut_off_is_not_forgiven(gate, suite):
    title, command, usual = suite(WAITS[0], 2)
    passed, table, _ = gate((title, f"{command} --maxfail=1", usual))
    assert not passed
    assert "pytest did not run all tests" in table


def test_a_suite_that_cannot_be_read_fails(gate, suite, tmp_path):
    step = suite(WAITS[0])
    (tmp_path / "test_it.py").write_text("import no_such_module\n")
    passed, table, _ = gate(step)
    assert not passed
    assert "no_such_module" in table


def test_the_table_says_what_to_do(gate, tmp_path):
    broken = "echo fine; echo 'a.py:3: error: bad  [name]'; exit 3"
    passed, table, _ = gate(("lint", broken, 1), ("next", "echo ran", 1))
    assert not passed
    assert "command: echo fine" in table
    assert "error: a.py:3: error: bad  [name]" in table
    [log] = [line.split(": ")[1] for line in table.splitlines() if line.strip().startswith("log: ")]
    assert (tmp_path / log).read_text().startswith("fine\n")
    assert "next" in table
    assert table.endswith("0 passed, 1 failed")


def test_optional_steps_are_left_out_when_time_is_short(gates, gate):
    Step = gates["gate"].Step  # noqa: N806
    passed, table, _ = gate(Step("first", "sleep 0.3", 1), Step("long", "exit 1", 5, optional=True),
                            Step("needed", "exit 0", 9), short_s=2)
    assert passed
    assert "left out: it would end after more than" in table


@pytest.mark.parametrize("optional", [False, True])
def test_after_a_failed_step(gates, gate, optional):
    """The others are run all the same if it is one that can be left out."""
    step = gates["gate"].Step
    passed, _, made = gate(step("one", "exit 1", 0, optional=optional), step("two", "exit 1", 0, optional=True),
                           step("three", "true", 0, optional=True))
    assert not passed
    assert [result.state for result in made.results] == ["failed", *(
        ["failed", "passed"] if optional else ["left out", "left out"])]


@pytest.mark.parametrize(("share", "option"), [("2/4", "--share=2/4"), ("", "")])
def test_a_share_of_the_long_tests(gate, share, option):
    _, table, made = gate(("long", "echo '[{share}]'", 0), share=share)
    assert made.results[0].log.read_text() == f"[{option}]\n"
    assert ("of the long tests, this was share 2/4" in table) == bool(share)


def test_a_commit_has_its_share(gates, tmp_path, monkeypatch):
    """The same one each time, and other commits have the others."""
    module, shares = gates["gate"], []
    monkeypatch.setattr(module, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for of in ("AUTHOR", "COMMITTER"):      # the same commits each time
        monkeypatch.setenv(f"GIT_{of}_DATE", "2026-01-01T00:00:00Z")
    for number in range(40):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "commit",
                        "-q", "--allow-empty", "-m", str(number)], cwd=tmp_path, check=True)
        shares.append(module.share_of_commit())
        assert module.share_of_commit() == shares[-1]
    assert set(shares) == {f"{number}/{module.SHARES}" for number in range(1, module.SHARES + 1)}


def test_an_optional_step_is_stopped_when_time_is_over(gates, gate):
    Step = gates["gate"].Step  # noqa: N806
    passed, table, _ = gate(Step("long", "echo begun; sleep 60", 0, optional=True), Step("last", "true", 0), short_s=1)
    assert passed
    assert "left out: stopped after" in table
    assert "last" in table


def test_what_cannot_be_had_is_left_out_with_its_reason(gates, gate):
    passed, table, _ = gate(gates["gate"].Step("guest", "exit 1", 1, ready=lambda: "there is no QEMU"))
    assert passed
    assert "left out: there is no QEMU" in table


def test_steps_do_not_get_what_make_hands_down(gate, monkeypatch):
    """`make ci ARGS=quick` must not give ARGS to the steps' own `make`."""
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=quick")
    monkeypatch.setenv("ARGS", "quick")
    _, _, made = gate(("one", 'echo "[$ARGS$MAKEFLAGS]"; exit 1', 1))
    assert made.results[0].log.read_text() == "[]\n"


def test_the_steps_are_in_order(gates):
    """The cheapest first; what can be left out last."""
    steps = gates["gate"].STEPS
    quick = ["set-up", "lint", "documentation site", "plain install", "tests"]
    assert [step.title for step in steps[:5]] == [step.title for step in steps if step.quick] == quick
    assert [step.optional for step in steps] == sorted(step.optional for step in steps)


def test_outcomes_are_written_at_once(suite, tmp_path):
    """A run that is killed has said what failed."""
    _, command, _ = suite("raise ValueError('block 3')", always=True)
    command = command.replace("{outcomes}", "out.jsonl")
    subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, check=False)
    [row, _] = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (row["test"], row["kind"], row["error"]) == ("test_it.py::test_it[0]", "data", "ValueError: block 3")
