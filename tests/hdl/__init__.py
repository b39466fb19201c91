"""Tests of the gateware: models, cocotb benches (``benches/``), proofs (``formal/``)."""

from .harness import coverage

if coverage.FOLDER:
    coverage.instrument(coverage.FOLDER)
