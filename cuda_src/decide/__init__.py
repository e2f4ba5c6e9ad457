"""Mode decision of P and B frames, on a GPU."""
