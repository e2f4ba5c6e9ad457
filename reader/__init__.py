"""Frames of a video by index and time, from its index and the decoder."""
