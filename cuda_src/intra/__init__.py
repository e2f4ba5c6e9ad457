"""Intra macroblocks: prediction, choice, coding, on a GPU."""
