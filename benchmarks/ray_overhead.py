"""A long file by `h264lite encode --ray local` beside the plain command, by turns on the same cores: overhead in per cent.

    python benchmarks/ray_overhead.py --size 1920x1080 --frames 1500 --keyint 50 --cpus 16 --turns 3

Wall seconds of the whole commands, with and without the start of Ray, and processor seconds of all processes.
"""

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from h264lite.samples.make_clip import write_clip


def run(command: list[str], cpus: set[int]) -> tuple[float, float]:
    """(wall, processor) seconds of a command and its children on these cores."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    subprocess.run(command, check=True, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_of_ray(cpus: set[int]) -> float:
    """Seconds that Ray takes to start and stop: a part of each --ray local."""
    script = "import ray; ray.init('local', include_dashboard=False, logging_level='ERROR'); ray.shutdown()"
    return run([sys.executable, "-c", script], cpus)[0]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="640x360", metavar="WxH")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--keyint", type=int, default=50)
    parser.add_argument("--cpus", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--input", help="a raw file in place of a made clip; its name has the size")
    given, options = parser.parse_known_args()
    cpus = set(sorted(os.sched_getaffinity(0))[: given.cpus])
    width, height = map(int, given.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(given.input or f"{folder}/clip_{width}x{height}.yuv")
        if not given.input:
            write_clip(source, width, height, given.frames)
        words = ["--keyint", str(given.keyint), "--device", "cpu", "--quiet", *options]
        plain, ray, hashes = [], [], set()
        for turn in range(given.turns + 1):
            for results, more in ((plain, []), (ray, ["--ray", "local"])):
                out = Path(folder) / "out.264"
                result = run([sys.executable, "-m", "h264lite", "encode", str(source), str(out), *words, *more], cpus)
                hashes.add(hashlib.sha256(out.read_bytes()).hexdigest())
                if turn:  # the first one compiles
                    results.append(result)
        start = min(start_of_ray(cpus) for _ in range(2))
    assert len(hashes) == 1, "streams differ"
    (a, _), (b, _) = min(plain), min(ray)
    print(f"{len(cpus)} cores: plain {a:.2f} s, --ray local {b:.2f} s, of which Ray starts and stops in {start:.2f} s")
    print(f"overhead {100 * (b / a - 1):+.1f} %, without the start {100 * ((b - start) / a - 1):+.1f} %; same SHA-256")
    print(f"processor seconds of the plain command {min(cpu for _, cpu in plain):.2f}")


if __name__ == "__main__":
    main()
