"""Transforms, and the residual of inter macroblocks, on a GPU."""
