"""The lookahead: half-size frames, their costs, the macroblock tree, on a CPU."""
