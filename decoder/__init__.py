"""A decoder of its own, from the decoding clauses of the standard."""
