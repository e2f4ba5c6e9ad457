"""Entropy coding: CAVLC and CABAC, on a GPU."""
