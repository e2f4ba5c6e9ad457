"""Executors, the stage table, hybrid and threads: where and when stages run."""
