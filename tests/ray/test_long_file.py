"""`h264lite encode --ray`: the bytes of one process for any number of workers, any chunks, any loss; nothing is left."""

import os
import signal
import time

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.cluster import pipeline
from h264lite.cluster.connection import Share
from h264lite.cluster.pipeline import FileInput, RayPipeline
from h264lite.encoder.encoder import Encoder
from h264lite.encoder.errors import DeviceLost
from h264lite.encoder.files.opening import open_source
from h264lite.encoder.settings.config import Config
from h264lite.samples import make_clip

from .started import ray, started, tasks_here

WIDTH, HEIGHT, FRAMES = 64, 48, 48
FAST = ["--keyint", "8", "--preset", "superfast", "--device", "cpu", "--quiet"]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A raw file, and the same as Y4M."""
    folder = tmp_path_factory.mktemp("clip")
    raw, y4m = folder / f"clip_{WIDTH}x{HEIGHT}.yuv", folder / "clip.y4m"
    for name in (raw, y4m):
        make_clip.write_clip(name, WIDTH, HEIGHT, FRAMES, 3)
    return raw, y4m


@pytest.fixture(scope="module")
def cluster():
    with started(4) as running:
        yield running


def encode(source, out, *words):
    assert main(["encode", str(source), str(out), *FAST, *words]) == 0
    return out.read_bytes()


@pytest.mark.parametrize("rate", [["--qp", "30", "--b-adapt", "0", "--scenecut", "0"], ["--crf", "28"]], ids=["qp", "crf"])
def test_bytes_are_those_of_one_process(cluster, clip, tmp_path, monkeypatch, rate):
    raw, y4m = clip
    plain = encode(raw, tmp_path / "plain.264", *rate)
    for least, threads in ((1, "1"), (20, "2"), (1000, "3")):  # 4 tasks at once, 2 and 1
        monkeypatch.setattr(pipeline, "CHUNK_FRAMES", least)
        assert encode(raw, tmp_path / "ray.264", *rate, "--ray", "--threads", threads) == plain
    monkeypatch.setattr(pipeline, "CHUNK_FRAMES", 1)
    assert encode(y4m, tmp_path / "ray.264", *rate, "--ray") == encode(y4m, tmp_path / "plain.264", *rate)  # shipped


def test_two_passes(cluster, clip, tmp_path):
    streams = []
    for ray_words in ([], ["--ray", "--threads", "1"]):
        stats = ["--stats", str(tmp_path / f"stats{len(ray_words)}")]
        encode(clip[0], tmp_path / "first.264", "--crf", "28", "--pass", "1", *stats, *ray_words)
        streams.append(encode(clip[0], tmp_path / "second.264", "--bitrate", "200", "--pass", "2", *stats, *ray_words))
    assert streams[0] == streams[1]


def stream(config, raw, file=None, least=1, cpus=1, feed=lambda number, encoding: None):
    """The stream of a raw file by RayPipeline. file: the input that workers open; feed: called before each frame."""
    source = open_source(str(raw), (WIDTH, HEIGHT))
    pipelines = []

    def make(settings, keep):
        pipelines.append(RayPipeline(ray, settings, Share(cpus), file and file(source), keep, least=least))
        return pipelines[0]

    packets = []
    with Encoder.from_config(config, make=make) as encoder:
        for number, planes in enumerate(source.frames()):
            feed(number, pipelines[0])
            packets += encoder.encode(planes)
        packets += encoder.flush()
    source.close()
    return b"".join(packet.data for packet in packets)


@pytest.fixture(scope="module")
def config():
    return Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", keyint=4, preset="superfast", threads=1)


@pytest.fixture(scope="module")
def plain(config, clip):
    source = open_source(str(clip[0]), (WIDTH, HEIGHT))
    with Encoder.from_config(config) as encoder:
        packets = [packet for planes in source.frames() for packet in encoder.encode(planes)] + encoder.flush()
        return b"".join(packet.data for packet in packets)


@pytest.mark.parametrize("other", ["absent", "of other content", "shorter"])
def test_a_file_that_workers_lack_is_shipped(cluster, clip, config, plain, tmp_path, other):
    copy = tmp_path / "copy.yuv"
    content = bytearray(clip[0].read_bytes())
    if other != "absent":
        copy.write_bytes(bytes(len(content)) if other == "of other content" else content[: len(content) // 2])
    seen = []
    shipped = stream(config, clip[0], lambda source: FileInput(str(copy), source.later, 0),
                   feed=lambda number, encoding: seen.append(encoding._ship_files))  # fmt: skip
    assert shipped == plain
    assert not seen[0]


def test_a_worker_that_is_killed(cluster, clip, config, plain):
    """kill -9 of a process with a chunk, three times."""
    killed = []

    def kill(number, encoding):
        deadline = time.monotonic() + 20
        while number in (20, 30, 40) and time.monotonic() < deadline:
            encoding._wait()
            if encoding._by_task and (processes := tasks_here()):
                os.kill(processes[0], signal.SIGKILL)
                killed.append(processes[0])
                return
            if not encoding._by_task:
                return

    assert stream(config, clip[0], feed=kill) == plain
    assert killed


def test_few_chunks_are_in_the_cluster_and_none_stays(cluster, clip, config, plain):
    most, owned = [], ray._private.worker.global_worker.core_worker.get_all_reference_counts
    before = len(owned())
    assert stream(config, clip[0], cpus=4, feed=lambda number, encoding: most.append(len(encoding._chunks))) == plain
    assert 1 <= max(most) <= 3  # one task at once, one that waits, and one that is made
    for _ in range(50):
        if len(owned()) <= before:
            break
        time.sleep(0.1)
    assert len(owned()) <= before


def test_errors_of_a_task(cluster, clip, config, monkeypatch):
    """What was finished before can be fetched."""
    monkeypatch.setattr(pipeline, "Stream", lambda name: pipeline_stream(name, version="0.0"))
    with pytest.raises(h264lite.Error, match=r"has h264lite .*, and the command is 0\.0"):
        stream(config, clip[0])


def pipeline_stream(name, version):
    from h264lite.cluster.worker import Stream

    return Stream(name, version)


def test_a_chunk_that_kills_every_process(cluster, clip, config, monkeypatch):
    def die(stream, job):
        os._exit(1)

    monkeypatch.setattr(pipeline, "encode", die)
    monkeypatch.setenv("RAY_TASK_MAX_RETRIES", "0")
    remote = ray.remote
    monkeypatch.setattr(ray, "remote", lambda **options: remote(**options, max_retries=0))
    with pytest.raises(DeviceLost, match=r"Ray: frames 0 to \d+ cannot be encoded"):
        stream(config, clip[0])
    monkeypatch.setenv("RAY_TASK_MAX_RETRIES", "3")
    ray.get(remote(lambda: None).remote())  # Ray keeps the number of the last task as its default


def test_ray_that_runs_is_left_running(cluster):
    assert ray.is_initialized()
    assert np.sum(ray.get(ray.put(np.ones(3)))) == 3


