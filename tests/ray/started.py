"""Clusters of Ray on this machine for tests, small and without reports."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'h264lite[ray]')")
STORE = 300 << 20  # bytes of the object store


@contextmanager
def started(cpus):
    """Ray with so many logical processors."""
    ray.init("local", num_cpus=cpus, object_store_memory=STORE, include_dashboard=False, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()


def tasks_here():
    """Processes, children of this one's, that have a chunk now."""
    numbers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_task = (folder / "cmdline").read_bytes().startswith(b"ray::h264lite encode")
        except OSError:
            continue
        if is_task and os.getpid() in ancestors(int(folder.name)):
            numbers.append(int(folder.name))
    return numbers


def ancestors(process):
    """The parents of a process, up to the first one."""
    parents = []
    while process > 1:
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        parents.append(process)
    return parents
