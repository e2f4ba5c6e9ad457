"""One frame: its arrays, its coding loop, its slices."""
