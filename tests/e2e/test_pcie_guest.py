"""``make guest OF=pcie``, with fewer events: the kernel's own VFIO at the other end of the bus."""

import pytest
from linux_guest import Steps
from pcie_guest import run


@pytest.mark.slow
def test_recorded_by_linux():
    run(4, 2000, Steps())
