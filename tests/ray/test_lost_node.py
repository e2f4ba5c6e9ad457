"""A machine of the cluster that is removed while it has chunks: the stream is the same."""

import time

import pytest
from h264lite.encoder.settings.config import Config
from h264lite.samples import make_clip

from .started import STORE, ancestors, ray, tasks_here
from .test_long_file import HEIGHT, WIDTH, stream

cluster_utils = pytest.importorskip("ray.cluster_utils")


def test_a_node_that_is_removed(tmp_path):
    raw = tmp_path / "clip.yuv"
    make_clip.write_clip(raw, WIDTH, HEIGHT, 48, 3)
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=4, preset="superfast", threads=1)
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={
        "num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False})  # fmt: skip
    try:
        second = cluster.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(cluster.address, log_to_driver=False)
        removed, begun = [], time.monotonic()

        def remove(number, pipeline):
            raylet = second.all_processes["raylet"][0].process.pid if not removed else None
            deadline = time.monotonic() + 20
            while not removed and len(pipeline._by_task) >= 2 and time.monotonic() < deadline:
                if any(raylet in ancestors(process) for process in tasks_here()):
                    cluster.remove_node(second, allow_graceful=False)
                    removed.append(number)
                time.sleep(0.002)

        lossy = stream(config, raw, feed=remove)
        assert removed, "the second node had no chunk"
        while sum(node["Alive"] for node in ray.nodes()) > 1 and time.monotonic() < begun + 40:
            time.sleep(0.1)
        assert sum(node["Alive"] for node in ray.nodes()) == 1
        assert lossy == stream(config, raw, least=1000)
    finally:
        ray.shutdown()
        cluster.shutdown()
