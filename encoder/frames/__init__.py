"""Frames in memory: arrays, tensors and images of other libraries as sources of the encoder."""
