"""What is proven of the extended sink."""
