"""Decisions for a frame before it is coded."""
