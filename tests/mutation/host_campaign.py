"""The mutation campaign of the host: do the tests notice when the host's programs are broken?

``make mutation OF=host`` changes one place of the host's sources at a time (host_mutants.py), in a copy of the
repository, and runs tests there until one fails. Which tests call which function is measured first, once for each
file of tests (host_tree.py). A mutant meets the most promising tests that call its function, then the others that do,
then more tests of the same files and the tests that are named after its file. Verdicts go to a journal under
``.build/mutation`` as they come: a campaign that was interrupted continues. See docs/develop/verification.md.
"""

import functools
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from campaign import Gateware, main
from host_mutants import HostFinder, function_of
from host_tree import HOST, HostTree, Reach, files, test_files
from mutants import Mutant
from steps import Step
from tree import ROOT

__all__ = ["Host"]

#: Seconds of tests, as measured, in each round.
_BUDGETS = (6.0, 60.0, 20.0)


class Host(Gateware):
    """What is broken, and which tests must notice: the sources of the host."""

    folder = HOST
    journal = "host-seed"
    equivalent = Path(__file__).with_name("equivalent-host.toml")
    part = "file"
    rounds = ("the most promising tests that call the function", "all that call it",
              "others of their files and of its name")
    finder = HostFinder
    least = 1

    def files(self) -> list[str]:
        return files()

    @functools.cached_property
    def reach(self) -> Reach:
        """What has been measured."""
        return Reach.measured(None)

    def steps(self, mutant: Mutant, kind: int) -> list[Step]:
        function = function_of((HOST / mutant.file).read_text(), mutant.line)
        calling = self.reach.of_function(mutant.file, function) or self.reach.of_file(mutant.file)
        near = self._affordable(calling, _BUDGETS[0]) or calling[:1]
        rest = self._affordable([test for test in calling if test not in near], _BUDGETS[1])
        met = {*near, *rest}
        stem = Path(mutant.file).stem
        around = {test.partition("::")[0] for test in calling} | {
            file for file in test_files() if Path(file).stem.startswith(f"test_{stem}")}
        more = self._affordable([test for test in self.reach.of_files(around) if test not in met], _BUDGETS[2])
        tests = (near, rest, more)[kind]
        limit = 20 + 4 * sum(self.reach.seconds[test] for test in tests)
        return [Step(shlex.join(tests), seconds=limit, called=("near", "far", "around")[kind])] if tests else []

    def _affordable(self, tests: Iterable[str], budget: float) -> list[str]:
        """The first of them, as many as fit in so many seconds."""
        found = []
        for test in tests:
            budget -= self.reach.seconds[test]
            if budget < 0:
                break
            found.append(test)
        return found

    def met(self, step: Step, root: Path = ROOT) -> dict[str, str]:
        return {test: Step(test).key(root) for test in shlex.split(step.arguments)}

    def left(self, step: Step, met: dict[str, str], root: Path) -> Step | None:
        tests = [test for test, key in self.met(step, root).items() if met.get(test) != key]
        return replace(step, arguments=shlex.join(tests)) if tests else None

    def late(self, name: str) -> bool:
        return False

    def tree(self) -> HostTree:
        tree = HostTree()
        self.__dict__["reach"] = Reach.measured(tree)
        return tree

    def stillborn(self, tree: HostTree, why: str) -> bool:
        return False

    def sound(self, by: str) -> bool:
        """A test that has been measured passed; a time-out is many times what the tests took."""
        return "::" not in by or by.partition("[")[0] in self.reach.passed


if __name__ == "__main__":
    main(Host(), __doc__)
