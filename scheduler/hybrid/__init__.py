"""Frames that CPU threads and a GPU share by rows: plans, routes, and the executor that follows them."""
