"""Tests of the gateware: models, cocotb benches (``benches/``), proofs (``formal/``)."""
