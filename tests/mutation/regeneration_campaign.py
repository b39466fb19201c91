"""The mutation campaign for regeneration boards and the store port: as that of the capture path, with these rooms."""

import dataclasses
import hashlib

from campaign import Gateware, main
from mutants import Mutant
from steps import Step
from tree import Tree

_TESTS = "tests/hdl/regeneration/test_"
#: Benches of a room, and its proof.
_BENCHES = {
    "item_silence": "item_silence", "moment_gate": "moment_gate", "byte_coder": "byte_coder",
    "link_fronts": "link_fronts", "link_code": "frame_serializer line_aligner", "link_counts": "link_counts",
    "frame_serializer": "frame_serializer", "transmitter": "transmitter store_refusals",
    "line_aligner": "line_aligner", "frame_checker": "frame_checker", "moment_parser": "moment_parser",
    "replay": "replay", "link_losses": "link_losses", "receiver": "links torn_items", "links": "links torn_items",
    "ports": "ports", "wired_boards": "wired_boards",
}
_PROOFS = {"moment_gate": "moment gate", "byte_coder": "words", "store_port": "store port"}
_WHOLE = "torn_items", "receiver"


class RegenerationTree(Tree):
    """A tree whose gateware is both ends of the link, and the store port."""

    def elaborated(self) -> str | None:
        def elaborate() -> int:
            from amaranth.back import rtlil
            from hypermon.hdl.layout import Front, Geometry
            from hypermon.hdl.regeneration.link_fronts import LinkFronts
            from hypermon.hdl.regeneration.ports import Ports
            from hypermon.hdl.regeneration.wired_boards import WiredBoards
            from hypermon.hdl.store_port import StorePort

            linked = dataclasses.replace(Geometry.extended(12), links=1)
            made = [Ports(linked, pad) for pad in (False, True)]
            made += [WiredBoards(1), WiredBoards(1, "ice40"), StorePort(), StorePort(8, 3)]
            made += [LinkFronts(Front.UART, 4096), LinkFronts(Front.SELECTED, 100, 3)]
            text = "".join(rtlil.convert(stage, emit_src=False) for stage in made)
            print(hashlib.sha256(text.encode()).hexdigest())
            return 0
        status, said = self._apart(elaborate, 300)
        return said.strip() if status == 0 else None


class Regeneration(Gateware):
    """The rooms of the regeneration board, of its receiver, and of the store port."""

    journal = "regeneration"
    rounds = ("benches of the room", "proofs, too", "the whole link, too")

    def files(self) -> list[str]:
        return [*(f"regeneration/{room}.py" for room in _BENCHES), "store_port.py"]

    def steps(self, mutant: Mutant, kind: int) -> list[Step]:
        room = mutant.file.rpartition("/")[2].removesuffix(".py")
        if kind == 1:
            proof = f"tests/hdl/formal/test_formal_regeneration.py::test_holds[{_PROOFS.get(room)}]"
            return [Step(f'"{proof}"', proof=True)] if room in _PROOFS else []
        if room == "store_port":
            return [Step("tests/hdl/test_store_port.py")] if kind == 0 else []
        benches = _BENCHES[room].split()
        if kind == 0:
            return [Step(f"{_TESTS}{name}.py") for name in benches]
        return [Step(f"{_TESTS}{name}.py", seconds=600) for name in _WHOLE if name not in benches]

    def late(self, name: str) -> bool:
        return False

    def tree(self) -> Tree:
        return RegenerationTree()


if __name__ == "__main__":
    main(Regeneration(), __doc__)
