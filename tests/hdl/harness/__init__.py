"""What the gateware's tests are run with: simulators, models, verdicts."""
