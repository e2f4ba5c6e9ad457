"""Forks, interrupts and worker processes, many times: what hangs, is wrong or is left behind.

    python tests/fuzz/process_runs.py forks|interrupts|workers --runs N [--seed S] [--first F] [--jobs J]

forks: a run is a process that has begun a video and forks four children, which write, decode, drop or end; all files must be
as those of a process without forks. interrupts: a run is 20 calls of Encoder, VideoWriter or write_video, which a timer
ends; what they leave behind must decode. workers: a run is an encode by two worker processes, of which some are killed or
stopped, or their parent is killed or interrupted; the file must be whole, and no process may be left. A run is known by
kind, seed and number: --first NUMBER --runs 1 runs it again. The last line counts; exit code 1 where anything is wrong.
"""

import argparse
import contextlib
import faulthandler
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

WIDTH, HEIGHT, FRAMES = 64, 48, 20
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"threads": 2}, {"threads": 1, "preset": "ultrafast"}, {"gops": 2, "threads": 3, "keyint": 5},
    {"tune": "zerolatency"}, {"ref": 3, "bframes": 3}, {"bitrate": 200}, {"crf": 25, "threads": 4},
)  # fmt: skip
LIMIT = 120  # seconds of a child, or of a call
CHILDREN, CALLS = 4, 20  # of a run


class ByTimer(Exception):
    """The caller's own."""


def pictures(seed: int) -> list[Any]:
    """RGB frames: noise that moves."""
    import numpy as np

    noise = np.random.default_rng(seed).integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    return [np.roll(noise, 3 * k, 1) // (1 + k % 3) for k in range(FRAMES)]


# ---- forks
def forks(rng: random.Random, folder: Path) -> Counter[str]:
    """One run: see above. What the children have done, by kind."""
    import h264lite

    options, frames, outcomes = rng.choice(OPTIONS), pictures(rng.randrange(99)), Counter[str]()
    writer = h264lite.VideoWriter(folder / "parent.mp4", device="cpu", **options)
    before = rng.randrange(FRAMES)
    feeder = threading.Thread(target=lambda: [writer.write(frame) for frame in frames])
    if fed := rng.random() < 0.5:  # by another thread, while this one forks
        feeder.start()
        time.sleep(rng.random() * rng.choice((0.02, 0.3)))
    else:
        for frame in frames[:before]:
            writer.write(frame)
    children = []
    for k in range(CHILDREN):
        what = rng.choice(("write", "write", "write", "decode", "drop", "refused", "exit"))
        child = os.fork()
        if not child:
            faulthandler.dump_traceback_later(LIMIT, exit=True)
            held = [writer]
            del writer
            _in_child(what, held, folder / f"child{k}.mp4", frames, options)  # "exit" leaves the interpreter as usual
        children.append((child, what))
        time.sleep(rng.random() * 0.02)
    for child, what in children:
        status = os.waitpid(child, 0)[1]
        outcomes[f"child {what}" if not status else f"WRONG: child {what}, status {status}"] += 1
    if fed:
        feeder.join()
    else:
        for frame in frames[before:]:
            writer.write(frame)
    writer.close()
    expected = h264lite.write_video(None, frames, device="cpu", **options)
    for path in folder.glob("*.mp4"):
        if path.read_bytes() != expected:
            outcomes[f"WRONG: {path.name} ({options}) differs from the file of a process without forks"] += 1
    return outcomes


def _in_child(what: str, held: list[Any], path: Path, frames: list[Any], options: dict[str, Any]) -> None:
    import h264lite

    if what == "exit":
        sys.exit(0)
    status = 3
    try:
        if what == "write":
            h264lite.write_video(path, frames, device="cpu", **options)
        elif what == "decode":
            packets = h264lite.encode(frames[:3], device="cpu", preset="ultrafast", threads=1)
            decoder = h264lite.Decoder()
            assert len([*decoder.decode(packets), *decoder.flush()]) == 3
        elif what == "drop":
            held.clear()
            gc.collect()
        elif held[0]._feeder.session is not None:
            with contextlib.suppress(h264lite.Error):
                held[0].write(frames[0])
                raise AssertionError("not refused")
            held[0].close()
        status = 0
    finally:
        os._exit(status)


# ---- interrupts
def interrupts(rng: random.Random, folder: Path) -> Counter[str]:
    """One run: see above. What became of the calls."""
    complaints: list[object] = []
    sys.unraisablehook = lambda about: complaints.append(None if _is_llvmlite(about.object) else about.exc_value)
    outcomes = Counter[str]()
    calls: tuple[Callable[..., str], ...] = (_encoder, _writer, _write_video)
    for k in range(CALLS):
        call, options, frames = rng.choice(calls), {"device": "cpu", **rng.choice(OPTIONS)}, pictures(rng.randrange(99))
        error = rng.choice((KeyboardInterrupt, TimeoutError, MemoryError, ByTimer))
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        outcomes[call(_Timer(rng.random() ** 2 * (0.7 if k else 3), error), frames, options, folder / f"{k}.mp4")] += 1
        faulthandler.cancel_dump_traceback_later()
    gc.collect()
    begin = time.monotonic()
    while alive := [thread.name for thread in threading.enumerate()[1:] if thread.is_alive()]:
        if time.monotonic() - begin > 20:
            outcomes[f"WRONG: threads are left: {alive}"] += 1
            break
        time.sleep(0.05)
    for about in complaints:
        # CPython's list of threads lacks one whose start was interrupted
        is_start = isinstance(about, KeyError) and isinstance(about.args[0], threading.Thread)
        if about and not is_start and not isinstance(about, KeyboardInterrupt | ByTimer) and "by the timer" not in str(about):
            outcomes[f"WRONG: Python complains: {about!r}"] += 1
    return outcomes


def _is_llvmlite(place: object) -> bool:
    """Its `__del__` needs attributes that an interrupted constructor has not set."""
    return getattr(place, "__name__", "") == "__del__" and getattr(place, "__module__", "").startswith("llvmlite.")


class _Timer:
    """Raises an error after some seconds, in the block."""

    def __init__(self, seconds: float, error: type[BaseException]) -> None:
        self.seconds, self.error, self.hit = max(seconds, 1e-4), error, False

    def __enter__(self) -> None:
        def strike(_: int, frame: FrameType | None) -> None:
            if frame is not None and frame.f_code is not _Timer.__exit__.__code__:  # else the block is over
                self.hit = True
                raise self.error("by the timer")

        signal.signal(signal.SIGALRM, strike)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        except self.error:
            return True
        # Python's import and llvmlite take a TimeoutError for a file that is not there
        missing = isinstance(error, ImportError) or "load shared object file 'libllvmlite" in str(error)
        # and Thread.start raises a KeyError in its place
        start = isinstance(error, KeyError) and isinstance(error.args[0], threading.Thread) and error.__context__
        return self.hit and (isinstance(start or error, self.error) or (missing and self.error is TimeoutError))


def _encoder(timer: _Timer, frames: list[Any], options: dict[str, Any], _: Path) -> str:
    import h264lite

    packets: list[Any] = []
    encoders: list[h264lite.Encoder] = []
    with timer:
        encoders.append(h264lite.Encoder(WIDTH, HEIGHT, 25, **options))
        for frame in frames:
            packets += encoders[0].encode(frame)
        packets += encoders[0].flush()
    for encoder in encoders:
        with contextlib.suppress(h264lite.Error):  # frames lost by the interrupt
            packets += encoder.flush()
        encoder.close()
    times = [packet.dts for packet in packets]
    if packets and (packets[0].pts or times != [*range(times[0], times[0] + len(times))]):
        return "Encoder: interrupted before the caller had the packets"
    shown = len([*h264lite.analyse(b"".join(packet.data for packet in packets))]) if packets else 0
    if shown != len(packets) or (not timer.hit and shown != FRAMES):
        return f"WRONG: Encoder({options}): {shown} frames of {len(packets)} packets"
    return f"Encoder: {'interrupted' if timer.hit else 'whole'}"


def _writer(timer: _Timer, frames: list[Any], options: dict[str, Any], path: Path) -> str:
    import h264lite

    with timer, h264lite.VideoWriter(path, **options) as writer:
        for frame in frames:
            writer.write(frame)
    return _file("VideoWriter", timer, path, options)


def _write_video(timer: _Timer, frames: list[Any], options: dict[str, Any], path: Path) -> str:
    import h264lite

    with timer:
        h264lite.write_video(path, frames, **options)
    return _file("write_video", timer, path, options)


def _file(name: str, timer: _Timer, path: Path, options: dict[str, Any]) -> str:
    import h264lite

    if not path.exists():
        return f"{name}: interrupted, no file" if timer.hit else f"WRONG: {name}({options}): no file"
    shown = len([*h264lite.analyse(path)])
    if not shown or (not timer.hit and shown != FRAMES):
        return f"WRONG: {name}({options}): {shown} frames"
    return f"{name}: {'interrupted' if timer.hit else 'whole'}"


# ---- worker processes
def workers(rng: random.Random, folder: Path) -> Counter[str]:
    """One run: see above. What was done, and how the encode ended."""
    size, count = WIDTH * HEIGHT * 3 // 2, 900
    clip = folder / f"in_{WIDTH}x{HEIGHT}.yuv"
    clip.write_bytes(rng.randbytes(7 * size) * (count // 7) + bytes(count % 7 * size))
    words = [sys.executable, "-m", "h264lite", "encode", str(clip)]
    options = ["--keyint", "10", "--preset", "ultrafast", "--qp", "30", "--quiet"]
    subprocess.run([*words, str(folder / "one.264"), *options, "--device", "cpu"], check=True)
    expected = (folder / "one.264").read_bytes()
    environment = os.environ | {"H264LITE_WORKERS": "1", "H264LITE_WATCHDOG": "4"}
    out = folder / "out.264"
    running = subprocess.Popen([*words, str(out), *options, "--devices", "cpu,cpu"], env=environment, stderr=subprocess.PIPE)
    what = rng.choice(("kill one", "kill all", "stop one", "stop one and interrupt", "kill the parent", "interrupt"))
    time.sleep(rng.random() * 3)
    children = _children(running.pid)
    if children and what.startswith(("kill one", "stop one", "kill all")):
        for child in children if what == "kill all" else rng.sample(children, 1):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP if "stop" in what else signal.SIGKILL)
    if what == "kill the parent" or "interrupt" in what:
        running.send_signal(signal.SIGKILL if "kill" in what else signal.SIGINT)
    try:
        said = running.communicate(timeout=LIMIT)[1].decode()
    except subprocess.TimeoutExpired:
        running.kill()
        return Counter({f"WRONG: {what}: hangs": 1})
    data, ended = out.read_bytes() if out.exists() else b"", running.returncode
    outcomes = Counter({f"{what}: exit code {ended}, {'same bytes' if data == expected else 'part of the bytes'}": 1})
    may_be_part = "interrupt" in what or "kill the parent" in what or (what == "kill all" and ended)
    before_program = "interrupt" in what and not data and said.startswith("Fatal Python error: init_import_site")
    is_wrong = not expected.startswith(data) or (data != expected and not may_be_part)
    if is_wrong or ("Traceback" in said and not before_program):
        short = said if len(said) < 2000 else f"{said[:1000]} [...] {said[-1000:]}"
        outcomes[f"WRONG: {what}: exit code {ended}, {len(data)} of {len(expected)} bytes, {short}"] += 1
    begin = time.monotonic()
    while left := [child for child in children if os.path.exists(f"/proc/{child}")]:
        if time.monotonic() - begin > 10:
            outcomes[f"WRONG: {what}: processes are left"] += 1
            for child in left:
                os.kill(child, signal.SIGKILL)
            break
        time.sleep(0.05)
    return outcomes


def _children(parent: int) -> list[int]:
    numbers = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[1]) == parent and b"h264lite worker" in Path(f"/proc/{name}/cmdline").read_bytes():
                numbers.append(int(name))
    return numbers


# ---- all of them
KINDS = {"forks": forks, "interrupts": interrupts, "workers": workers}


def one(kind: str, seed: int, number: int) -> int:
    """A run in this process; its counts as a line of JSON."""
    folder, process = tempfile.mkdtemp(), os.getpid()
    try:
        print(json.dumps(KINDS[kind](random.Random(f"{kind}-{seed}-{number}"), Path(folder))), flush=True)
    finally:
        if os.getpid() == process:  # no child that leaves the interpreter as usual
            shutil.rmtree(folder)
    return 0


def runs(kind: str, seed: int, numbers: range, jobs: int) -> Iterator[tuple[int, dict[str, int]]]:
    """Number and counts of each run, in processes of their own."""

    def run(number: int) -> tuple[int, dict[str, int]]:
        words = [sys.executable, __file__, kind, "--runs", "1", "--seed", str(seed), "--one", str(number)]
        with tempfile.TemporaryFile("w+") as said:
            try:
                done = subprocess.run(words, stdout=subprocess.PIPE, stderr=said, text=True, timeout=(CALLS + 2) * LIMIT)
                lines, code = done.stdout.splitlines(), done.returncode
            except subprocess.TimeoutExpired:
                lines, code = [], -1
            said.seek(0)
            text = said.read()
        if code or len(lines) != 1:
            return number, {f"WRONG: exit code {code}: {text[-9000:]}": 1}
        return number, json.loads(lines[0])

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(run, numbers)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        return one(args.kind, args.seed, args.one)
    total, begin, wrong = Counter[str](), time.monotonic(), 0
    for number, outcomes in runs(args.kind, args.seed, range(args.first, args.first + args.runs), args.jobs):
        for text, count in outcomes.items():
            if text.startswith("WRONG"):
                wrong += count
                print(f"{args.kind} --seed {args.seed} --first {number} --runs 1: {text}", flush=True)
            else:
                total[text] += count
    counts = ", ".join(f"{count} {text}" for text, count in sorted(total.items()))
    print(f"{args.kind}, seed {args.seed}: {args.runs} runs in {time.monotonic() - begin:.0f} s, {wrong} wrong ({counts})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
