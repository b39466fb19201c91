"""The mutation campaign for the PCIe link: as that of the capture path, with the rooms of ``hdl/transport/pcie``."""

from campaign import Gateware, main
from mutants import Mutant
from steps import Step

_TESTS = "tests/hdl/transport/pcie/test_"
#: Benches of a room, before those of the whole link; and its proofs.
_BENCHES = {
    "tlp": "tlp completer ring", "completer": "completer", "ring_registers": "ring_registers", "ring": "ring",
    "msi": "msi", "function_reset": "function_reset", "link": "ultrascale_plus",
    "ultrascale_plus": "ultrascale_plus", "series_7": "series_7",
}
_WHOLE = ("faults", "ultrascale_plus", "series_7", "long")


class Pcie(Gateware):
    """The rooms of the PCIe link."""

    journal = "pcie"
    rounds = ("benches of the room", "proofs, too", "the whole link, too")

    def files(self) -> list[str]:
        return [f"transport/pcie/{room}.py" for room in _BENCHES]

    def steps(self, mutant: Mutant, kind: int) -> list[Step]:
        room = mutant.file.rpartition("/")[2].removesuffix(".py")
        if kind == 1:
            proof = f"tests/hdl/formal/test_formal_pcie.py::test_holds[{room}]"
            return [Step(f'"{proof}"', proof=True)] if room in ("ring", "completer") else []
        benches = _BENCHES[room].split()
        if kind == 0:
            return [Step(f"{_TESTS}{name}.py") for name in benches]
        return [Step(f"{_TESTS}{name}.py", seconds=600) for name in _WHOLE if name not in benches]

    def late(self, name: str) -> bool:
        return False


if __name__ == "__main__":
    main(Pcie(), __doc__)
