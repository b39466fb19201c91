"""Values printed in the paper: Table 2, and the figures in its text."""

from typing import NamedTuple

__all__ = ["MILLION_HARD", "MILLION_SOFT", "NODES", "ONE_NODE", "RATES", "TABLE_2", "TITLES", "TWO_NODES", "VOLUMES",
           "Printed"]

#: The programs, as the paper writes them.
TITLES = {"simplex": "Simplex", "life": "Life", "matmul": "MatMul", "place": "Place"}
#: Cubes of Table 2.
NODES = (1, 2, 4, 8)


class Printed(NamedTuple):
    """A row of Table 2: seconds and logged bytes; ``hard_bytes`` is None where the board was overrun."""

    raw: float
    soft: float
    hard: float
    soft_bytes: int
    hard_bytes: int | None

    @property
    def frames(self) -> int | None:
        """Frames of 16 bytes."""
        return None if self.hard_bytes is None else self.hard_bytes // 16


TABLE_2 = {
    ("simplex", 1): Printed(151.059, 151.261, 154.838, 63437, 2302144),
    ("simplex", 2): Printed(77.850, 78.396, 86.524, 417476, 10273040),
    ("simplex", 4): Printed(42.068, 42.561, 54.338, 1245712, 27763296),
    ("simplex", 8): Printed(24.277, 24.931, 41.045, 3190873, 67493104),
    ("life", 1): Printed(152.222, 152.335, 154.157, 34103, 1204608),
    ("life", 2): Printed(111.869, 112.274, 120.280, 277359, 10155584),
    ("life", 4): Printed(78.505, 79.112, 93.048, 752373, 27607776),
    ("life", 8): Printed(43.981, 44.741, 58.202, 1670188, 60352768),
    ("matmul", 1): Printed(245.660, 245.840, 248.808, 54706, 1928096),
    ("matmul", 2): Printed(123.118, 123.210, 124.696, 55215, 1947792),
    ("matmul", 4): Printed(61.975, 62.045, 62.677, 56277, 1985376),
    ("matmul", 8): Printed(31.369, 31.423, 31.859, 58456, 2069136),
    ("place", 1): Printed(318.012, 318.473, 322.325, 74225, 2628192),
    ("place", 2): Printed(82.000, 85.071, 143.356, 2018749, 74003616),
    ("place", 4): Printed(69.668, 72.851, 137.145, 4147564, 149195680),
    ("place", 8): Printed(38.498, 41.427, 102.221, 7977226, None),
}

#: Bytes a second of Table 2, software's and the board's, by program: on 1, 2, 4 and 8 nodes.
RATES = {
    "simplex": ((419, 5325, 29269, 127988), (14868, 118730, 510937, 1644368)),
    "life": ((224, 2470, 9510, 37330), (7814, 84433, 296705, 1036954)),
    "matmul": ((223, 448, 907, 1860), (7749, 15620, 31676, 64947)),
    "place": ((233, 23730, 56932, 192561), (8154, 516223, 1087868, None)),
}
#: Frames a second from one node and from two, without a delay (5.1).
ONE_NODE, TWO_NODES = 113_000, 202_000
#: Seconds for a million events of four bytes on one node, by hardware and by software (5.1).
MILLION_HARD, MILLION_SOFT = 88.5, 3.9
#: Mean KB/s of Place, by nodes (6).
VOLUMES = {4: 82, 8: 276, 16: 629}
