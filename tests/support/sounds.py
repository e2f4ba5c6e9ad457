"""Sound for tests: files by PyAV, and what PyAV reads of a file: packets, times and decoded samples."""

import io
from fractions import Fraction

import numpy as np
import pytest

FILES = {  # name of a file, codec
    "adts": ("s.aac", "aac"),
    "ogg": ("s.ogg", "libopus"),
    "flac": ("s.flac", "flac"),
    "m4a": ("s.m4a", "aac"),
    "opus in mp4": ("s.mp4", "libopus"),
    "wav": ("s.wav", "pcm_s16le"),
}

RATE = 48000


def pcm(count=2 * RATE - 777, channels=2, seed=1):
    """int16[count, channels]: bursts of tones over noise, so that a shift by a sample is seen."""
    time = np.arange(count)
    tones = np.stack([np.sin(time * (0.05 + 0.013 * k)) * (time % 9600 > 4800 - 700 * k) for k in range(channels)], 1)
    return (8000 * tones + np.random.default_rng(seed).normal(0, 40, tones.shape)).astype(np.int16)


def write(path, codec, samples, rate=RATE, **container):
    """A file of these samples by FFmpeg's encoder."""
    av = pytest.importorskip("av")
    layout = {1: "mono", 2: "stereo", 6: "5.1"}[samples.shape[1]]
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.reshape(1, -1)), "s16", layout)
    frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
    with av.open(str(path), "w", **container) as out:
        track = out.add_stream(codec, rate=rate)
        track.codec_context.layout = layout
        context = track.codec_context
        resampler = av.AudioResampler(context.format.name, layout, rate, frame_size=context.frame_size or 1024)
        for piece in [*resampler.resample(frame), *resampler.resample(None), None]:
            out.mux(track.encode(piece))
    return path


def copy(path, to, **container):
    """The sound of a file in another container."""
    av = pytest.importorskip("av")
    with av.open(str(path)) as source, av.open(str(to), "w", **container) as out:
        track = out.add_stream_from_template(source.streams.audio[0])
        for packet in source.demux(audio=0):
            if packet.size:
                packet.stream = track
                out.mux(packet)
    return to


def opened(file):
    av = pytest.importorskip("av")
    return av.open(io.BytesIO(file) if isinstance(file, bytes) else str(file))


def packets(file):
    """The bytes of the sound's packets, without ADTS headers."""
    with opened(file) as container:
        data = [bytes(packet) for packet in container.demux(audio=0) if packet.size]
    return [packet[7:] if packet[:2] == b"\xff\xf1" and len(packet) > 7 else packet for packet in data]


def decoded(file):
    """(time of the first sample in samples, [channels, n]) of the sound, decoded."""
    with opened(file) as container:
        track = container.streams.audio[0]
        frames = list(container.decode(track))
        channels = track.codec_context.channels
        arrays = [frame.to_ndarray() for frame in frames]
    parts = [array if len(array) == channels else array.reshape(-1, channels).T for array in arrays]
    begin = (frames[0].pts or 0) * (frames[0].time_base or 0) * track.codec_context.sample_rate
    return begin, np.concatenate(parts, 1)
