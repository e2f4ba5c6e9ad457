"""Encoding of several closed GOPs at once."""
