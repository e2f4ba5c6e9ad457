"""Packets of silence: FFmpeg's decoders hear nothing in them, and they last as long as they say."""

import numpy as np
import pytest
from h264lite.sound import flac, opus
from h264lite.sound.aac import config_of
from h264lite.sound.aac import format_of as aac_format
from h264lite.sound.flac_encoder import FlacEncoder
from h264lite.sound.silence import silence
from h264lite.sound.stream import SoundPacket

av = pytest.importorskip("av")


def decoded(codec, sound, packets):
    """[channels, n] of packets one after another."""
    context = av.CodecContext.create(codec, "r")
    context.extradata = (opus.MAGIC if codec == "opus" else b"") + sound.setup
    context.open()
    arrays = [frame.to_ndarray() for packet in packets for frame in context.decode(av.Packet(packet.data))]
    return np.concatenate([array.reshape(-1, sound.channels).T if len(array) == 1 else array for array in arrays], 1)


@pytest.mark.parametrize("channels", (1, 2))
@pytest.mark.parametrize("rate", (8000, 44100, 48000))
def test_aac(channels, rate):
    sound = aac_format(config_of(rate, channels))
    heard = decoded("aac", sound, 5 * [silence(sound)])
    assert heard.shape == (channels, 5 * 1024) and not heard.any() and silence(sound).duration == 1024


@pytest.mark.parametrize("channels", (1, 2))
def test_opus(channels):
    sound, _ = opus.format_of(opus.header_of(channels, 312))
    heard = decoded("opus", sound, 5 * [silence(sound)])
    assert heard.shape[1] in (5 * 960, 5 * 960 - 312) and not heard.any()
    assert opus.packet_duration(silence(sound).data) == silence(sound).duration == 960


@pytest.mark.parametrize(("channels", "bits"), ((1, 16), (2, 24), (6, 20)))
def test_flac(channels, bits):
    """Numbers of frames go on; a shorter frame has as many samples as are wanted."""
    encoder = FlacEncoder(44100, channels, bits)
    sound = flac.format_of(encoder.stream_info())
    first = SoundPacket(encoder.frame(np.full((encoder.block, channels), 77, np.int32), 41), encoder.block)
    second = silence(sound, first)
    third = silence(sound, second)
    assert [flac.frame_header(packet.data).number for packet in (first, second, third)] == [41, 42, 43]
    heard = decoded("flac", sound, (first, second, SoundPacket(third.cut(100), 100)))
    assert heard.shape == (channels, 2 * encoder.block + 100)
    assert heard[:, : encoder.block].all() and not heard[:, encoder.block :].any()
    assert second.duration == encoder.block == flac.frame_duration(second.data) and silence(sound) is None


def test_formats_that_have_none():
    """Several channels of AAC and Opus, AAC with SBR or in other units, FLAC with blocks of several sizes."""
    assert silence(aac_format(config_of(48000, 6))) is None and silence(aac_format(config_of(48000, 2), 1000)) is None
    assert silence(aac_format(bytes(((5 << 3) | 3, 0x11, 0x88, 0)))) is None
    assert silence(opus.format_of(bytes((1, 3, 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 1, 2, 1, 0, 1, 2)))[0]) is None
    encoder = FlacEncoder(44100, 1, 16)
    packet = SoundPacket(encoder.frame(np.zeros((encoder.block, 1), np.int32), 0), encoder.block)
    assert silence(flac.format_of(b"\x00\x10" + encoder.stream_info()[2:]), packet) is None
