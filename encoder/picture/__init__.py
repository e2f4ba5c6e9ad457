"""One picture: its state as arrays, its loop, its slices."""
