"""Intra macroblocks: prediction, choice, coding, on a CPU."""
