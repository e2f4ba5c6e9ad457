"""Costs in decisions: SAD, SATD, bits, on a CPU."""
