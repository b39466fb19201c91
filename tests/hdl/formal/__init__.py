"""Specifications of the gateware, and what proves them."""
