"""Threads of the host: stages in bands, tasks, and copies and file reads without the interpreter's lock."""
