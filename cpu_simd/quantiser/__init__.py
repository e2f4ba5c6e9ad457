"""Quantisation: factors, trellis, QPs of macroblocks, on a CPU."""
