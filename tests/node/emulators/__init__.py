"""Machines that nodes are, run in emulators, and what is built for them."""
