"""Executors, stage table, planning and threads: where and when stages run."""
