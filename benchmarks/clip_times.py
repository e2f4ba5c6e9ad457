"""How long a clip takes, from RGB arrays in memory to the bytes of an MP4, beside libx264 of PyAV: the table of README.md.

    python -m h264lite.benchmarks.clip_times [--columns "H100,16 cores"] [--clips 81,121,124,300] [--runs 2]
        [--csv benchmarks/results/clip_times.csv] [--no-prepare]

For each column and clip one new process: `import h264lite` and the first `write_video(None, frames, fps)`, then --runs warm
calls, then x264 medium and ultrafast through PyAV on the same frames and cores. All have their defaults (CRF 23). Seconds:
the first call with the import, the least of the warm calls. Kernels are compiled before, by a short encode (--no-prepare:
not). A column is a part of the first GPU's name, or "N cores", which binds the process to so many; without --columns the GPU,
if there is one, and "16 cores" or "2 cores". Columns that this machine cannot have are left out. Clips are cut out of
`driving` of $H264LITE_SEQUENCES, forwards and backwards; without that folder or PyAV out of a made scene. Rows of --csv for
the same column and clip are replaced, others stay; a Markdown table of all rows is printed; `make docs` puts it into README.
"""

import argparse
import csv
import datetime
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results" / "clip_times.csv"
CLIPS = {81: (832, 480, 16), 121: (1280, 720, 24), 124: (1344, 768, 24), 300: (1920, 1080, 30)}  # width, height, fps
GPUS, CORES = ("H100", "H200", "A100", "B200"), ("16 cores", "2 cores")  # columns
FIELDS = ("column", "clip", "encoder", "call", "seconds", "bytes", "date", "machine", "version")
OURS, PEERS = "h264lite", ("x264 medium", "x264 ultrafast")
SOURCE = 54  # frames of the source, which then runs backwards
CLIP = "{} frames {}x{}"


def cores_of(column: str) -> int:
    """0 for a GPU."""
    number, _, unit = column.partition(" ")
    return int(number) if unit == "cores" else 0


def source_frames() -> list[np.ndarray]:
    """RGB frames, uint8[1080, 1920, 3]."""
    if os.environ.get("H264LITE_SEQUENCES") and _has_pyav():
        from h264lite.benchmarks import clips

        pictures = clips.load("driving_1920x1080_30", SOURCE).pictures
        return [_rgb(*_planes(picture, 1080, 1920)) for picture in pictures]
    from h264lite.samples.make_clip import Scene

    scene = Scene(1920, 1080, 1)
    return [_rgb(*scene.frame(number)) for number in range(SOURCE)]


def _planes(picture: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, rest = picture[:height], picture[height:].reshape(2, height // 2, width // 2)
    return y, rest[0], rest[1]


def _rgb(y: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """BT.709 in limited range, nearest chroma: any picture would do."""
    luma = (y.astype(np.float32) - 16) * (255 / 219)
    blue, red = ((plane.repeat(2, 0).repeat(2, 1).astype(np.float32) - 128) * (255 / 224) for plane in (u, v))
    planes = (luma + 1.5748 * red, luma - 0.1873 * blue - 0.4681 * red, luma + 1.8556 * blue)
    return np.clip(np.stack(planes, -1) + 0.5, 0, 255).astype(np.uint8)


def write_clip(frames: list[np.ndarray], count: int, path: Path) -> None:
    """uint8[count, height, width, 3] as .npy: the middle of the frames, forwards and backwards."""
    width, height, _ = CLIPS[count]
    top, left = (1080 - height) // 2, (1920 - width) // 2
    turn = frames + frames[-2:0:-1]
    cut = [frame[top : top + height, left : left + width] for frame in turn]
    np.save(path, np.stack([cut[k % len(cut)] for k in range(count)]))


def x264_bytes(frames: np.ndarray, fps: int, preset: str, threads: int) -> int:
    """Bytes of an MP4 by PyAV, as people write it."""
    import av

    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(fps))
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
        stream.options = {"preset": preset, "threads": str(threads)}
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    return len(target.getvalue())


def measure(path: str, fps: int, cores: int, runs: int) -> None:
    """In a process of its own: prints rows as JSON. cores: 0 for a GPU, whose peers have all cores."""
    if cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    frames = np.load(path)
    options: dict[str, Any] = {"device": "cpu", "threads": cores} if cores else {"device": "cuda"}
    spent, sizes = [], []
    for _ in range(1 + runs):
        start = time.perf_counter()
        import h264lite

        data = h264lite.write_video(None, frames, fps=fps, **options)
        spent.append(time.perf_counter() - start)
        sizes.append(len(data or b""))
    rows = [(OURS, "first", spent[0], sizes[0]), (OURS, "warm", min(spent[1:]), sizes[1])]
    for peer in PEERS if cores and _has_pyav() else ():
        start = time.perf_counter()
        size = x264_bytes(frames, fps, peer.split()[1], cores)
        rows.append((peer, "warm", time.perf_counter() - start, size))
    print(json.dumps(rows))


def _has_pyav() -> bool:
    import importlib.util

    return importlib.util.find_spec("av") is not None


def machine(cores: int) -> str:
    """Processor, or GPU."""
    if not cores:
        return gpu_name()
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} cores seen"


def can_have(column: str) -> bool:
    """Whether this machine has the cores, or a GPU of that name."""
    if cores := cores_of(column):
        return len(os.sched_getaffinity(0)) >= cores
    return column in gpu_name()


def gpu_name() -> str:
    """Of the first GPU, which gets no context in this process; empty without one."""
    from h264lite.cuda_src.runtime import facts

    return next((gpu.name for gpu in facts.gpus()), "")


def child(path: Path, fps: int, cores: int, runs: int) -> list[tuple[str, str, float, int]]:
    """Rows of `measure` in a new process."""
    words = [sys.executable, "-m", "h264lite.benchmarks.clip_times", "--measure", str(path), str(fps), str(cores), str(runs)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of the CSV; none if there is no file."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: Iterable[dict[str, str]]) -> None:
    """The CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(rows: list[dict[str, str]]) -> str:
    """Markdown: seconds by clip and column; warm, and the first call in brackets."""
    columns = [gpu for gpu in GPUS if any(row["column"] == gpu for row in rows)] or [GPUS[0]]
    columns += CORES
    seconds = {(row["column"], row["clip"], row["encoder"], row["call"]): float(row["seconds"]) for row in rows}

    def cell(column: str, clip: str, encoder: str) -> str:
        warm, first = (seconds.get((column, clip, encoder, call)) for call in ("warm", "first"))
        if warm is None:
            return "-"
        return _short(warm) + (f" ({_short(first)})" if first is not None else "")

    encoders = {column: (OURS, *PEERS) if cores_of(column) else (OURS,) for column in columns}
    titles = [column if encoder == OURS else f"{encoder}, {column}" for column in columns for encoder in encoders[column]]
    lines = ["| clip | " + " | ".join(titles) + " |", "|---|" + len(titles) * "--:|"]
    for count, (width, height, _) in CLIPS.items():
        clip = CLIP.format(count, width, height)
        cells = [cell(column, clip, encoder) for column in columns for encoder in encoders[column]]
        lines.append(f"| {clip} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _short(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], *map(int, sys.argv[3:6]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", metavar="LIST", help="joined by commas")
    parser.add_argument("--clips", default=",".join(map(str, CLIPS)), help="by their numbers of frames")
    parser.add_argument("--runs", type=int, default=2, help="warm calls, of which the least counts")
    parser.add_argument("--csv", type=Path, default=RESULTS)
    parser.add_argument("--no-prepare", action="store_true", help="kernels are compiled already")
    args = parser.parse_args()
    wanted = [int(count) for count in args.clips.split(",")]
    named = args.columns.split(",") if args.columns else [*GPUS, next(cores for cores in CORES if can_have(cores))]
    columns = [column for column in named if can_have(column)]
    if args.columns and (left_out := set(named) - set(columns)):
        print(f"not on this machine: {', '.join(sorted(left_out))}", file=sys.stderr)
    from h264lite.version import __version__

    rows = read_rows(args.csv)
    with tempfile.TemporaryDirectory() as folder:
        frames, path = source_frames(), Path(folder, "clip.npy")
        write_clip(frames, min(CLIPS), path)
        for cores in {cores_of(column) for column in columns} if not args.no_prepare else ():
            child(path, 16, cores, 1)
        for count in wanted:
            width, height, fps = CLIPS[count]
            write_clip(frames, count, path)
            clip = CLIP.format(count, width, height)
            for column in columns:
                cores = cores_of(column)
                common = {"column": column, "clip": clip, "date": str(datetime.date.today()), "machine": machine(cores),
                          "version": __version__}  # fmt: skip
                rows = [row for row in rows if (row["column"], row["clip"]) != (column, clip)]
                for encoder, call, spent, size in child(path, fps, cores, args.runs):
                    rows.append(common | {"encoder": encoder, "call": call, "seconds": f"{spent:.3f}", "bytes": str(size)})
                    print(f"{clip}, {column}, {encoder}, {call}: {spent:.3f} s, {size} bytes", file=sys.stderr, flush=True)
                write_rows(args.csv, rows)  # what is measured stays if the rest is interrupted
    print(table(rows))


if __name__ == "__main__":
    main()
