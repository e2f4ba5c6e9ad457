"""Fast presets beside OpenH264, the encoder without GPL: bits at equal PSNR, and processor time of one thread.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.openh264 [--frames 60] [--rounds 5] [--preset PRESET ...]
        [CLIP ...]

OpenH264 runs in GStreamer (Debian: gstreamer1.0-tools, gstreamer1.0-plugins-bad), with rate control at the bitrates that
the first preset takes at QP 22, 27, 32, 37. Time: of the pipeline without what it takes to read the frames, at the bitrate
of QP 27; ours is that of an encode from memory at QP 27. All rows alternate, the best of the rounds counts. BD-rate: PCHIP,
luma PSNR of FFmpeg's decode; negative: ours takes fewer bits.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import h264lite
from h264lite.benchmarks import clips
from h264lite.benchmarks.presets import Points, bd_rate, count_of, shortened
from h264lite.benchmarks.rate_distortion import QPS, points

CHOICE = ("foreman_352x288_30", "BasketballPass_416x240_50", "mobile_352x288_30", "city_704x576_30")
TIMED = QPS.index(27)


def child_seconds() -> float:
    """Processor time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class OpenH264:
    """OpenH264 of one complexity, for a raw file of a clip."""

    def __init__(self, complexity: str, clip: clips.Clip, raw: Path) -> None:
        self.complexity, self.clip, self.out = complexity, clip, raw.with_suffix(".264")
        self.source = [
            "gst-launch-1.0", "-q", "filesrc", f"location={raw}", "!", "rawvideoparse", "format=i420",
            f"width={clip.width}", f"height={clip.height}", f"framerate={clip.fps}/1", "!",
        ]  # fmt: skip

    def encode(self, kbit: float) -> bytes:
        """The stream at a bitrate, in kbit/s."""
        options = [f"complexity={self.complexity}", f"bitrate={round(1000 * kbit)}", "rate-control=bitrate", "multi-thread=1",
                   "gop-size=250", "enable-frame-skip=false"]  # fmt: skip
        sink = ["!", "video/x-h264,profile=high", "!", "filesink", f"location={self.out}"]
        subprocess.run([*self.source, "openh264enc", *options, *sink], check=True, timeout=600)
        return self.out.read_bytes()

    def seconds(self, kbit: float) -> float:
        """Processor time of the frames, without start and reading."""
        before = child_seconds()
        self.encode(kbit)
        between = child_seconds()
        subprocess.run([*self.source, "fakesink"], check=True, timeout=600)
        return between - before - (child_seconds() - between)


def ours(clip: clips.Clip, qp: int, preset: str) -> bytes:
    """h264lite at a constant QP."""
    return h264lite.encode(
        clip.pictures, width=clip.width, height=clip.height, fps=clip.fps, qp=qp, threads=1, device="cpu", preset=preset
    )


def seconds_of(clip: clips.Clip, preset: str) -> float:
    """Processor time of an encode."""
    start = time.process_time()
    ours(clip, 27, preset)
    return time.process_time() - start


def compare(clip: clips.Clip, presets: list[str], rounds: int) -> dict[tuple[str, str], tuple[float, float]]:
    """BD-rate of each preset against each complexity, and its speed beside it."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "clip.yuv")
        raw.write_bytes(b"".join(picture.tobytes() for picture in clip.pictures))
        curves: dict[str, Points] = {preset: points(clip, [ours(clip, qp, preset) for qp in QPS]) for preset in presets}
        rates = curves[presets[0]][0][::-1]  # points begin with the lowest rate
        theirs = {name: OpenH264(name, clip, raw) for name in ("high", "low")}
        for name, encoder in theirs.items():
            curves[name] = points(clip, [encoder.encode(rate) for rate in rates])
        spent: dict[str, float] = dict.fromkeys(curves, 1e9)
        for _ in range(rounds):
            for name, encoder in theirs.items():
                spent[name] = min(spent[name], encoder.seconds(rates[TIMED]))
            for preset in presets:
                spent[preset] = min(spent[preset], seconds_of(clip, preset))
    for name in curves:
        print(
            f"    {name:<12}{len(clip.pictures) / spent[name]:8.0f} frames a second  ",
            *(f"{rate:8.1f} kb/s {psnr:6.3f} dB" for rate, psnr in zip(*curves[name])),
        )
    return {(preset, name): (bd_rate(curves[name], curves[preset]), spent[name] / spent[preset])
            for preset in presets for name in theirs}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", default=CHOICE, metavar="CLIP")
    parser.add_argument("--frames", type=int, default=60, help="of CIF; fewer of larger clips")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--preset", nargs="+", default=["ultrafast", "superfast", "veryfast"])
    args = parser.parse_args()
    clips.require("bjontegaard")
    if shutil.which("gst-launch-1.0") is None:
        raise SystemExit("OpenH264 runs in GStreamer: apt-get install gstreamer1.0-tools gstreamer1.0-plugins-bad")
    every: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for name in args.clips:
        print(name, flush=True)
        clip, _ = shortened(name, count_of(name, args.frames), False)
        for row, value in compare(clip, args.preset, args.rounds).items():
            every.setdefault(row, []).append(value)
            print(f"    {row[0]} beside {row[1]}: {value[0]:+.1f} % of the bits at {value[1]:.2f} times its speed")
    for (preset, name), values in every.items():
        bits, speed = statistics.mean(rate for rate, _ in values), statistics.geometric_mean(speed for _, speed in values)
        print(f"mean of {len(values)} clips: {preset} beside OpenH264 {name}: {bits:+.1f} %, {speed:.2f} times its speed")


if __name__ == "__main__":
    main()
