"""Broken streams end in frames or in one BitstreamError that names place and cause: prefixes, bit flips, NAL units.

The cases run in tests/support/broken.py, a process with bounded memory and time; the slow tests are the full sweeps, also
with NUMBA_BOUNDSCHECK=1. $H264LITE_SEED gives other cases.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import h264lite
import pytest

from ..support import round_trip, sequences, x264_streams

SUPPORT = Path(__file__).resolve().parents[1] / "support"
SEED = int(os.environ.get("H264LITE_SEED", 20240))


@pytest.fixture(scope="session")
def streams(tmp_path_factory) -> list[Path]:
    """Three small streams of the project's encoder; with PyAV one of CABAC, B slices, 8x8; a conformance stream cut."""
    folder = tmp_path_factory.mktemp("broken")
    clip = round_trip.noise_clip(48, 32, 5, 3)
    by_name = {
        "plain": round_trip.encode(clip, 48, 32, qp=32, keyint=3)[0],
        "slices": round_trip.encode(clip, 48, 32, qp=36, keyint=4, ref=3, slices=2)[0],
        "pcm": round_trip.encode(round_trip.noise_clip(33, 17, 3, 4), 33, 17, qp=1, keyint=2, no_deblock=True)[0],
    }
    try:
        pictures = [[plane[:48, :48] if plane.shape[0] == 64 else plane[:24, :24] for plane in picture]
                    for picture in x264_streams.clip(9)]
        options = {"keyint": 5, "bframes": 2, "weightp": 2, "aud": 1, "ref": 3}
        by_name["cabac"] = x264_streams.encode(pictures, qp=34, direct="temporal", **options)
    except pytest.skip.Exception:
        pass
    if os.environ.get("H264LITE_CONFORMANCE"):
        by_name["conformance"] = (sequences.conformance_folder() / "CABA3_SVA_B.264").read_bytes()[:4000]
    for name, data in by_name.items():
        if name == "conformance":  # cut at the last start code
            data = data[: data.rindex(b"\0\0\1")]
        (folder / f"{name}.264").write_bytes(data)
    return sorted(folder.glob("*.264"))


def sweep(streams: list[Path], step: int, flips: int, units: int, resilient: bool = False, timeout: int = 300,
          **environment: str) -> dict:
    """What tests/support/broken.py says of all cases."""
    numbers = map(str, (SEED, step, flips, units, int(resilient)))
    print(f"H264LITE_SEED={SEED}")
    root = str(Path(h264lite.__file__).resolve().parent.parent)
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, str(SUPPORT / "broken.py"), *numbers, *map(str, streams)], timeout=timeout,
                          capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path} | environment)
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout)
    print(json.dumps(said, indent=1))
    return said


def test_some_broken_streams(streams):
    said = sweep(streams, 29, 500, 60)
    assert said["frames"] > 1000 and len(said["errors"]) > 10


def test_some_broken_streams_resilient(streams):
    assert sweep(streams, 61, 250, 60, resilient=True)["frames"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("resilient", [False, True])
def test_all_broken_streams(streams, resilient):
    assert sweep(streams, 1, 10000, 500, resilient, timeout=1800)["cases"] > 10500


@pytest.mark.slow
def test_all_broken_streams_with_bounds_checked(streams, tmp_path):
    environment = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert sweep(streams, 1, 10000, 500, timeout=3600, **environment)["cases"] > 10500
