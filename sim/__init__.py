"""What stands around the gateware: the virtual board, stimuli, node emulators."""
