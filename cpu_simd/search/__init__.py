"""Integer motion search, and its refinement, on a CPU."""
