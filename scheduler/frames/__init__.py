"""Frames: their arrays, the coding loop of a frame on each device, and the frames in flight."""
