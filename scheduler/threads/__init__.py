"""Threads of the host: stages in bands, tasks, copies and reading without the interpreter."""
