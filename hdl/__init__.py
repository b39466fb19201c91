"""The gateware: the event capture board, stage by stage."""
