"""Entropy coding: CAVLC and CABAC, on a CPU."""
