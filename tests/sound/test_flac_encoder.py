"""FLAC of our own: FFmpeg decodes every sample, with all checks on, of any signal; sizes beside FFmpeg's encoder."""

import io

import numpy as np
import pytest
from h264lite.sound.crc import CRC_8, CRC_16, CRC_32
from h264lite.sound.flac import format_of, frame_duration, frame_header
from h264lite.sound.flac_encoder import FlacEncoder, _coded_number
from hypothesis import given, settings
from hypothesis import strategies as st

from ..support import sounds


def encoded(samples, rate, bits):
    """(encoder, frames)."""
    encoder = FlacEncoder(rate, samples.shape[1], bits)
    return encoder, [
        encoder.frame(samples[at : at + encoder.block], at // encoder.block) for at in range(0, len(samples), encoder.block)
    ]


def decoded(encoder, frames):
    """int[n, channels] by FFmpeg, which stops at a wrong check."""
    av = pytest.importorskip("av")
    data = b"fLaC\x80\0\0\x22" + encoder.stream_info() + b"".join(frames)
    with av.open(io.BytesIO(data), options={"err_detect": "crccheck+explode"}) as container:
        track = container.streams.audio[0]
        track.codec_context.options = {"err_detect": "crccheck+explode"}
        parts = [frame.to_ndarray().reshape(-1, encoder.channels) for frame in container.decode(track)]
    samples = np.concatenate(parts).astype(np.int64)
    return samples >> (32 - encoder.bits if parts[0].dtype == np.int32 else 0)


def signals():
    rng, time = np.random.default_rng(5), np.arange(30000)
    tone = (9000 * np.sin(time * 0.03)[:, None] * [1, 0.7] + rng.normal(0, 20, (len(time), 2))).astype(np.int32)
    yield "tones", tone, 48000, 16
    yield "noise", rng.integers(-32768, 32768, (9000, 2)), 44100, 16
    yield "24 bits", tone * 250 + rng.integers(0, 250, tone.shape), 96000, 24
    yield "24 bits of noise", rng.integers(-1 << 23, 1 << 23, (9000, 2)), 192000, 24
    yield "silence", np.zeros((9000, 2), np.int32), 8000, 16
    yield "8 of 16 bits", tone >> 8 << 8, 22050, 16
    yield "clicks", np.where(rng.random((9000, 1)) < 0.01, 32767, 0), 16000, 16
    yield "extremes", np.where(rng.random((9000, 2)) < 0.5, -32768, 32767), 48000, 16
    yield "extremes of 24 bits", np.where(rng.random((9000, 2)) < 0.5, -1 << 23, (1 << 23) - 1), 48000, 24
    yield "one after another", np.stack([tone[:, 0], -tone[:, 0] - 1], 1), 48000, 16
    yield "steps", np.repeat(rng.integers(-9, 9, (300, 1)), 40, 0) * 3000, 11025, 16
    for rate in (1000, 11000, 12345, 100001, 384000, 655350):
        yield f"{rate} samples a second", tone, rate, 16
    for channels in range(1, 9):
        yield f"{channels} channels", rng.integers(-99, 99, (5000, channels)).cumsum(0) % 30000, 32000, 16


@pytest.mark.parametrize(
    "name, samples, rate, bits", list(signals()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_sample_is_decoded(name, samples, rate, bits):
    encoder, frames = encoded(samples.astype(np.int32), rate, bits)
    assert np.array_equal(decoded(encoder, frames), samples)
    assert sum(map(frame_duration, frames)) == len(samples)
    assert sum(map(len, frames)) <= samples.size * bits / 8 + 40 * len(frames), "never much larger than PCM"
    described = format_of(encoder.stream_info())
    assert (described.rate, described.channels, described.bits) == (rate, samples.shape[1], bits)


def test_a_wrong_check_stops_the_decoder():
    """So that `decoded` says something of the checks."""
    encoder, frames = encoded(sounds.pcm(9000).astype(np.int32), 48000, 16)
    frames[1] = frames[1][:-1] + bytes((frames[1][-1] ^ 1,))
    with pytest.raises(pytest.importorskip("av").FFmpegError):
        decoded(encoder, frames)


@pytest.mark.parametrize("count", [*range(1, 20), 63, 64, 65, 4095, 4096, 4097, 8192])
def test_any_number_of_samples(count):
    samples = np.random.default_rng(count).integers(-3, 4, (count, 2)).cumsum(0).astype(np.int32)
    encoder, frames = encoded(samples, 48000, 16)
    assert len(frames) == -(-count // 4096)
    assert np.array_equal(decoded(encoder, frames), samples)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 700), st.integers(1, 3), st.integers(0, 24), st.sampled_from((16, 24)))
def test_any_signal(seed, count, channels, size, bits):
    """Random walks, steps and noise of every magnitude."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(-(1 << size), (1 << size) + 1, (count, channels))
    samples = samples.cumsum(0) if seed & 1 else samples
    samples = samples << (seed >> 1 & 7) if seed & 16 else samples
    samples = np.clip(samples, -1 << bits - 1, (1 << bits - 1) - 1).astype(np.int32)
    encoder, frames = encoded(samples, 2000 if seed & 32 else 48000, bits)
    assert np.array_equal(decoded(encoder, frames), samples)


def test_it_compresses_as_well_as_fixed_predictors_do(tmp_path):
    """Within 15 % of FFmpeg's encoder, which also has linear prediction."""
    samples = sounds.pcm()
    _, frames = encoded(samples.astype(np.int32), sounds.RATE, 16)
    other = sum(map(len, sounds.packets(sounds.write(tmp_path / "s.flac", "flac", samples))))
    assert sum(map(len, frames)) < 1.15 * other < 0.7 * samples.nbytes


@given(st.integers(0, (1 << 36) - 1))
def test_numbers_of_frames(number):
    """9.1.5: any of 36 bits is read again."""
    coded = _coded_number(number)
    head = bytes((0xFF, 0xF8, 0xC0, 0x18)) + coded
    header = frame_header(head + bytes((CRC_8.of_few(head),)))
    assert header == (len(head) + 1, number, 4096)
    if number < 1 << 16 and not 0xD800 <= number < 0xE000:
        assert coded == chr(number).encode()


@given(st.binary(max_size=300))
def test_checks_are_those_of_long_division(data):
    for check, width, polynomial in ((CRC_8, 8, 0x07), (CRC_16, 16, 0x8005), (CRC_32, 32, 0x04C11DB7)):
        rest = 0
        for byte in data:
            rest ^= byte << width - 8
            for _ in range(8):
                rest = rest << 1 ^ (polynomial | 1 << width if rest >> width - 1 else 0)
        assert check(data) == rest
    assert CRC_8.of_few(data) == CRC_8(data)
