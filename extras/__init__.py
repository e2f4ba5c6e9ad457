"""Modules of h264lite that are named like a library: in the root of a checkout they would hide it (h264lite/__init__.py)."""
