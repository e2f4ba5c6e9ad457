"""Encodes parts of a stream in other processes: chunks of closed GOPs, and a worker process for each device."""
