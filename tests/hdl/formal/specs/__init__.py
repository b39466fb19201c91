"""What is proven, stage by stage."""
