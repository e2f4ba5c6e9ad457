"""libx264 through PyAV with the same coding tools, the reference of the measurements."""

import time
from fractions import Fraction

import numpy as np
from h264lite.benchmarks.clips import Clip, picture_of

_P_FRAMES = {"bframes": "0", "ref": "1", "me": "esa", "merange": "16", "partitions": "all"}
# Tools of preset medium by profile, with exhaustive search; the lines of the benchmarks quote this.
SAME_TOOLS = {
    "baseline": {"profile": "baseline", **_P_FRAMES, "subme": "5", "trellis": "0", "8x8dct": "0"},
    "main": {"profile": "main", **_P_FRAMES, "subme": "7", "trellis": "1", "8x8dct": "0", "weightp": "0", "no-psy": "1"},
    "high": {"profile": "high", **_P_FRAMES, "subme": "7", "trellis": "1", "8x8dct": "1", "weightp": "0", "no-psy": "1"},
}


class X264:
    """An open encoder; `encode` takes av.VideoFrames made beforehand, so that only x264's own time counts."""

    def __init__(self, clip: Clip, qp: int | None, threads: int, preset: str = "medium", **tools: str) -> None:
        import av

        tools = dict(tools)
        profile, tune = tools.pop("profile", None), tools.pop("tune", None)
        params = ":".join([f"{name}={value}" for name, value in tools.items()] + [f"threads={threads}"])
        context = av.CodecContext.create("libx264", "w")
        context.width, context.height, context.pix_fmt = clip.width, clip.height, "yuv420p"
        context.framerate, context.time_base = Fraction(clip.fps), Fraction(1, clip.fps)
        context.options = {"preset": preset, "x264-params": params, **({} if qp is None else {"qp": str(qp)})}
        if tune:
            context.options = {**context.options, "tune": tune}
        if profile:
            context.options = {**context.options, "profile": profile}
        self.context = context

    def encode(self, frames: list) -> bytes:
        """Encodes all frames to an Annex B stream."""
        data = bytearray()
        for frame in frames:
            for packet in self.context.encode(frame):
                data += bytes(packet)
        for packet in self.context.encode(None):
            data += bytes(packet)
        return bytes(data)


def video_frames(clip: Clip) -> list:
    """The clip as av.VideoFrames, uint8 4:2:0, samples unchanged."""
    import av

    frames = []
    for index, picture in enumerate(clip.pictures):
        frame = av.VideoFrame(clip.width, clip.height, "yuv420p")
        flat, at = picture.ravel(), 0
        for plane in frame.planes:
            rows = np.zeros((plane.height, plane.line_size), np.uint8)
            size = plane.height * plane.width
            rows[:, : plane.width] = flat[at : at + size].reshape(plane.height, plane.width)
            plane.update(rows.tobytes())
            at += size
        frame.pts = index
        frames.append(frame)
    return frames


def run(clip: Clip, frames: list, qp: int | None, threads: int, preset: str = "medium", **tools: str) -> tuple[bytes, float]:
    """One encode: the stream and its seconds."""
    encoder = X264(clip, qp, threads, preset, **tools)
    start = time.perf_counter()
    data = encoder.encode(frames)
    return data, time.perf_counter() - start


def decode(data: bytes) -> list[np.ndarray]:
    """All frames of an Annex B stream, decoded by FFmpeg, in output order."""
    import av

    context = av.CodecContext.create("h264", "r")
    pictures = []
    for packet in [*context.parse(data), *context.parse(None)]:
        pictures += [picture_of(frame) for frame in context.decode(packet)]
    return pictures + [picture_of(frame) for frame in context.decode(None)]


def psnr_y(clip: Clip, pictures: list[np.ndarray]) -> float:
    """Mean of the frames' luma PSNR in dB."""
    values = []
    for source, decoded in zip(clip.pictures, pictures, strict=True):
        difference = source[: clip.height].astype(np.int32) - decoded[: clip.height]
        values.append(10 * np.log10(255**2 / max(1e-10, float(np.mean(difference * difference)))))
    return float(np.mean(values))
