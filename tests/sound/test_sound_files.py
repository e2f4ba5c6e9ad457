"""Sound read: packets and samples as FFmpeg has them, beginnings and ends, damaged files, arrays, packets of programs."""

import io
import itertools
import random
import struct
import time
import wave

import numpy as np
import pytest
from h264lite import AudioPackets
from h264lite.mp4.sound_entry import OtherSound
from h264lite.mp4.sound_reader import open_sound
from h264lite.sound import aac, opus
from h264lite.sound.crc import CRC_8
from h264lite.sound.flac_encoder import FlacEncoder
from h264lite.sound.packets import open_stream
from h264lite.sound.pcm import from_arrays
from h264lite.standard.bits import BitstreamError

from ..support import sounds

PCM = sounds.pcm(30000)
KINDS = sounds.FILES


@pytest.fixture(scope="module", params=KINDS)
def file(request, tmp_path_factory):
    name, codec = KINDS[request.param]
    return sounds.write(tmp_path_factory.mktemp("s") / name, codec, PCM)


def opened(data):
    """The sound of the bytes of a file."""
    return open_sound(io.BytesIO(data)) if data[4:8] == b"ftyp" else open_stream(io.BytesIO(data))


def flac_file(stream):
    """A stream of FLAC as a file."""
    return b"fLaC\x80\0\0\x22" + stream.format.setup + b"".join(packet.data for packet in stream.packets)


def samples_of(stream):
    """int[n, channels] of a stream of FLAC, decoded by FFmpeg."""
    return sounds.decoded(flac_file(stream))[1].T


def test_packets_are_those_of_ffmpeg(file):
    stream = opened(file.read_bytes())
    packets = list(stream.packets)
    if file.suffix == ".wav":
        assert np.array_equal(samples_of(opened(file.read_bytes())), PCM)
    else:
        assert [packet.data for packet in packets] == sounds.packets(file)
    assert (stream.format.rate, stream.format.channels, stream.delay) == (48000, 2, 0)
    heard = sum(packet.duration for packet in packets) - stream.skip
    assert heard == (31744 if file.suffix == ".aac" else 30000)
    assert stream.skip == {".aac": 0, ".m4a": 1024, ".ogg": 312, ".mp4": 312}.get(file.suffix, 0)


def test_a_file_read_in_small_pieces(file):
    """As pipes give it."""
    if file.suffix in (".m4a", ".mp4"):
        return
    data = file.read_bytes()
    small = type("Small", (io.BytesIO,), {"read": lambda self, size=-1: io.BytesIO.read(self, min(size, 37))})
    assert [packet[:2] for packet in open_stream(small(data)).packets] == [packet[:2] for packet in opened(data).packets]


def test_tags_are_left_out(file):
    """ID3v2 in front, ID3v1 behind."""
    if file.suffix not in (".aac", ".flac"):
        return
    data = file.read_bytes()
    tagged = b"ID3\4\0\0\0\0\1\x05" + bytes(133) + data + b"TAG" + bytes(125)
    assert list(opened(tagged).packets) == list(opened(data).packets)


def cut_anywhere(data, count=40):
    return sorted({random.Random(3).randrange(1, len(data)) for _ in range(count)})


def test_a_file_that_is_cut_off(file):
    """The packets before, then an error, or the end where a packet ends."""
    data = file.read_bytes()
    whole = list(opened(data).packets)
    for size in cut_anywhere(data):
        packets = []
        try:
            for packet in opened(data[:size]).packets:
                packets.append(packet.data)
        except BitstreamError as error:
            assert "\n" not in str(error) and len(str(error)) < 200
        if file.suffix != ".wav":
            assert packets == [packet.data for packet in whole[: len(packets)]]


def test_damaged_files_end_in_an_error_or_in_packets(file):
    """Random bytes changed, taken out and doubled: no other exception, no more data than the file has room for."""
    data, rng = file.read_bytes(), random.Random(4)
    raised = 0
    for _ in range(60 if file.suffix == ".wav" else 400):  # WAV is encoded
        bad = bytearray(data)
        for _ in range(rng.choice((1, 1, 3, 20))):
            at = min(rng.randrange(len(bad)), rng.choice((len(bad) - 1, 60, 700)))
            kind = rng.randrange(3)
            if kind == 0:
                bad[at] = rng.choice((0, 255, rng.randrange(256), bad[at] ^ 1 << rng.randrange(8)))
            elif kind == 1:
                del bad[at : at + rng.randrange(1, 30)]
            else:
                bad[at:at] = bad[at : at + rng.randrange(1, 30)]
        try:
            stream = opened(bytes(bad))
            total = sum(len(packet.data) for packet in stream.packets) if stream is not None else 0
            assert total <= 16 * len(bad) + 100_000
        except BitstreamError as error:
            raised += 1
            assert "\n" not in str(error) and len(str(error)) < 250
    assert raised > 10 or file.suffix == ".wav"


def test_a_changed_byte_of_flac_and_ogg_is_noticed(file):
    """Their checks hold every byte behind the headers."""
    if file.suffix not in (".flac", ".ogg"):
        return
    data = file.read_bytes()
    for at in random.Random(5).sample(range(len(data) // 2, len(data)), 60):
        with pytest.raises(BitstreamError, match=r"damaged|page|ends in"):
            list(opened(data[:at] + bytes((data[at] ^ 4,)) + data[at + 1 :]).packets)


def test_flac_of_variable_blocks_and_other_parameters(tmp_path):
    """Frames of any size and number: more than 127 frames, other block sizes, one channel, 24 bits, 96 kHz."""
    for options, channels, rate in (({"frame_size": 192}, 1, 44100), ({"frame_size": 1000}, 2, 96000)):
        av = pytest.importorskip("av")
        path = tmp_path / "o.flac"
        with av.open(str(path), "w") as out:
            track = out.add_stream("flac", rate=rate, options={})
            track.codec_context.layout = "mono" if channels == 1 else "stereo"
            size = options["frame_size"]
            for at in range(0, len(PCM), size):
                piece = np.ascontiguousarray(PCM[at : at + size, :channels].reshape(1, -1))
                frame = av.AudioFrame.from_ndarray(piece, "s16", track.codec_context.layout.name)
                frame.sample_rate, frame.pts = rate, at
                out.mux(track.encode(frame))
            out.mux(track.encode(None))
        stream = opened(path.read_bytes())
        packets = list(stream.packets)
        assert [packet.data for packet in packets] == sounds.packets(path)
        assert sum(packet.duration for packet in packets) == len(PCM)


def test_hostile_flac_takes_time_by_its_bytes():
    """Headers of the next frame inside of a frame, whose check is never right; tiny frames behind a large one."""
    head = bytes((0xFF, 0xF8, 0xC9, 0x18, 0, CRC_8.of_few(bytes((0xFF, 0xF8, 0xC9, 0x18, 0)))))
    following = bytes((0xFF, 0xF8, 0xC9, 0x18, 1, CRC_8.of_few(bytes((0xFF, 0xF8, 0xC9, 0x18, 1)))))
    front = b"fLaC\x80\0\0\x22" + FlacEncoder(44100, 2, 16).stream_info()
    begin = time.process_time()
    with pytest.raises(BitstreamError, match="FLAC frame 0"):
        list(opened(front + head + bytes(100) + following * 400_000).packets)
    encoder = FlacEncoder(44100, 1, 16)
    large = encoder.frame(np.random.default_rng(1).integers(-9999, 9999, (65536, 1)).astype(np.int32), 0)
    small = [encoder.frame(np.zeros((1, 1), np.int32), n) for n in range(1, 8000)]
    assert len(list(opened(front + large + b"".join(small)).packets)) == 8000
    assert time.process_time() - begin < 20


# PCM -----------------------------------------------------------------------------------------------------------------


def wav(tag, bits, data, channels=2, rate=48000, size=None, name=b"RIFF", extra=b"", extensible=False):
    width = channels * bits // 8
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, rate, rate * width, width, bits)
    if extensible:
        head += struct.pack("<HHIH14x", 22, bits, 3, tag)
    chunk = b"fmt " + struct.pack("<I", len(head)) + head
    size = len(data) if size is None else size
    return name + struct.pack("<I", 0xFFFFFFFF) + b"WAVE" + extra + chunk + b"data" + struct.pack("<I", size) + data


def test_wav_of_all_samples():
    """8 bits as 16, 16 and 24 as they are, 32 as 24, floating-point ones as 16; odd chunks; sizes that are not known."""
    wide = PCM.astype(np.int32) << 8 | 77
    three = wide.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    eight = (PCM >> 8) + 128
    floats = PCM / 32768
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    for data, expected in (
        (wav(1, 16, PCM.astype("<i2").tobytes()), PCM),
        (wav(1, 24, three), wide),
        (wav(1, 32, (wide << 8 | 5).astype("<i4").tobytes()), wide),
        (wav(1, 8, eight.astype(np.uint8).tobytes()), PCM >> 8 << 8),
        (wav(3, 32, floats.astype("<f4").tobytes()), PCM),
        (wav(3, 64, floats.astype("<f8").tobytes()), PCM),
        (wav(1, 16, PCM.tobytes(), extensible=True, extra=odd), PCM),
        (wav(1, 16, PCM.tobytes(), size=0), PCM),
        (wav(1, 16, PCM.tobytes(), size=0xFFFFFFFF), PCM),
        (wav(1, 16, PCM.tobytes() + b"LIST", size=PCM.nbytes), PCM),
        (
            wav(
                1,
                16,
                PCM.tobytes() + b"junk",
                size=0xFFFFFFFF,
                name=b"RF64",
                extra=b"ds64" + struct.pack("<IQQQI", 28, 0, PCM.nbytes, 0, 0),
            ),
            PCM,
        ),
        (wav(1, 16, PCM.tobytes()[:-3]), PCM[:-1]),
    ):
        stream = opened(data)
        samples = samples_of(stream)
        samples = samples >> 8 if stream.format.bits == 24 else samples
        assert np.array_equal(samples, expected)


def test_wav_of_the_standard_library():
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(44100)
        out.writeframes(PCM.astype("<i2").tobytes())
    assert np.array_equal(samples_of(opened(file.getvalue())), PCM)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (wav(1, 16, b""), "no samples"),
        (wav(1, 16, bytes(40), rate=5), "5 samples a second"),
        (wav(1, 16, bytes(90), channels=9), "9 channels"),
        (wav(1, 64, bytes(80)), "samples of 64 bits"),
        (wav(1, 16, bytes(9))[:30], "fmt has 10 bytes"),
        (wav(1, 16, bytes(9))[:40], "ends in"),
        (wav(3, 32, np.float32([1, np.nan]).tobytes()), "up to nan"),
        (wav(3, 32, np.float32([30000, 1]).tobytes()), "up to 30000"),
        (b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd", "before the chunk fmt"),
    ],
)
def test_wrong_wav(data, words):
    with pytest.raises(BitstreamError, match=words):
        list(opened(data).packets)


def test_files_of_others():
    for data in (
        wav(0x11, 4, bytes(40)),
        wav(6, 8, bytes(40)),
        b"\xff\xfb\x90\x64" + bytes(400),
        b"",
        b"hello, this is text",
        b"OggS" + bytes(2),
    ):
        try:
            assert opened(data + bytes(20)) is None
        except BitstreamError as error:
            assert data.startswith(b"OggS"), error


def test_arrays_in_all_forms():
    wide = PCM.astype(np.int32) << 16
    for samples, expected in (
        (PCM, PCM),
        (PCM.T, PCM),
        (PCM[:, 0], PCM[:, :1]),
        (PCM / 32768, PCM),
        ((PCM / 32768).astype(np.float32).T, PCM),
        (PCM[None], PCM),
        (PCM[::-1], PCM[::-1]),
        (PCM[:, ::-1], PCM[:, ::-1]),
        (PCM.astype(">i2"), PCM),
        ([PCM[:0], PCM[:900], PCM[900:901], PCM[901:]], PCM),
        ([[0.5, -0.5]] * 90, np.array([[16384, -16384]] * 90)),
        ((PCM[at : at + 777] for at in range(0, len(PCM), 777)), PCM),
        (((PCM >> 8) + 128).astype(np.uint8), PCM >> 8 << 8),
        (np.full((100, 1), 1.5), np.full((100, 1), 32767)),
        (np.full(100, -1.0), np.full((100, 1), -32768)),
    ):
        assert np.array_equal(samples_of(from_arrays(samples, 48000)), expected)
    stream = from_arrays(wide, 48000)
    assert stream.format.bits == 24 and np.array_equal(samples_of(stream), wide)


class Tensor:
    """As PyTorch's: on a device, with a gradient."""

    def __init__(self, array, where="gpu grad"):
        self.array, self.where = array, where
        self.shape, self.dtype = array.shape, "torch.bfloat16" if array.dtype == np.float64 else array.dtype

    def detach(self):
        return Tensor(self.array, self.where.replace(" grad", ""))

    def cpu(self):
        return Tensor(self.array, self.where.replace("gpu", "host"))

    def float(self):
        return Tensor(self.array.astype(np.float32), self.where)

    def __array__(self, dtype=None, copy=None):
        if self.where != "host":
            raise TypeError(f"a tensor on {self.where}")
        return self.array


def test_tensors():
    for array in (PCM, PCM / 32768):
        assert np.array_equal(samples_of(from_arrays(Tensor(array), 48000)), PCM)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (np.zeros((0, 2)), "no samples"),
        ([], "no samples"),
        (np.zeros((9, 9)), "one side is the channels"),
        (np.zeros((3, 4)), "not clear"),
        (np.zeros((2, 3, 4)), "not floats"),
        (np.zeros(9, np.int64), "int64"),
        (np.full(9, np.inf), "up to inf"),
        (np.zeros(9, complex), "complex"),
        ([np.zeros(9), np.zeros((9, 2))], "2 channels after 1"),
        ([np.zeros(9), np.zeros(9, np.int16)], "int16 after f"),
        (["a"], "not floats"),
        (np.array(["x"]), "not floats"),
    ],
)
def test_wrong_arrays(samples, words):
    with pytest.raises(ValueError, match=words):
        list(from_arrays(samples, 48000).packets)


# Packets -------------------------------------------------------------------------------------------------------------


def test_packets_of_a_program(file):
    """Those of a file, with its setup or a default one, are the stream of the file."""
    if file.suffix == ".wav":
        return
    stream = opened(file.read_bytes())
    packets = list(stream.packets)
    codec = stream.format.codec
    setup = b"OpusHead" + stream.format.setup if codec == "opus" else stream.format.setup
    again = AudioPackets(codec, [packet.data for packet in packets], setup=setup, priming=stream.skip).stream()
    assert again.format == stream.format and again.skip == stream.skip
    packets_again = list(again.packets)
    assert [packet.data for packet in packets_again] == [packet.data for packet in packets]
    assert [packet.duration for packet in packets_again[:-1]] == [packet.duration for packet in packets[:-1]]
    if codec != "flac":
        plain = AudioPackets(codec, [], rate=48000, channels=2).stream()
        assert (plain.format.rate, plain.format.channels) == (48000, 2) and plain.skip == (312 if codec == "opus" else 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mp3", []), "aac, opus or flac"),
        (("aac", b"abc"), "iterable of bytes"),
        (("flac", []), "STREAMINFO"),
        (("opus", [], {"channels": 6}), "identification header"),
        (("aac", [], {"channels": 9}), "AudioSpecificConfig"),
        (("aac", [], {"priming": -1}), "priming"),
        (("opus", [], {"setup": b"x"}), "header"),
        (("flac", [], {"setup": b"x"}), "34"),
        (("aac", [], {"setup": b"\x17"}), "too short"),
    ],
)
def test_wrong_packets(arguments, words):
    with pytest.raises(ValueError, match=words):
        AudioPackets(*arguments[:2], **dict(*arguments[2:]))
    for codec, packet in (
        ("aac", "text"),
        ("aac", b""),
        ("aac", b"\xff\xf1\x4c\x80\x01\x1f\xfc"),
        ("opus", b"\x03"),
        ("opus", b""),
    ):
        with pytest.raises(BitstreamError, match="packet"):
            list(AudioPackets(codec, [packet]).stream().packets)


def test_durations_of_opus_are_those_of_ffmpeg():
    """RFC 6716, 3.1: all 32 configurations, one frame, two, three."""
    av = pytest.importorskip("av")
    for config, code in itertools.product(range(32), (0, 1, 3)):
        packet = bytes((config << 3 | code, *((3,) if code == 3 else ()))) + bytes(12)
        duration = opus.packet_duration(packet) if code < 3 or config % 4 != 3 or config >= 12 else None
        if duration is None:
            with pytest.raises(BitstreamError):
                opus.packet_duration(packet)
            continue
        decoder = av.CodecContext.create("libopus", "r")
        decoder.layout, decoder.sample_rate = "mono", 48000
        assert [sum(frame.samples for frame in decoder.decode(av.Packet(packet))) for _ in range(2)] == [duration] * 2


def test_configurations_of_aac():
    for rate, channels in itertools.product((*aac.RATES, 12345), (1, 2, 6, 8)):
        assert aac.read_config(aac.config_of(rate, channels)) == (rate, channels, 1024)
    assert aac.read_config(bytes.fromhex("2b920800")) == (22050, 2, 1024)  # SBR: the core's rate
    assert aac.read_config(bytes.fromhex("1194")) == (48000, 2, 960)


def test_quicktime(tmp_path):
    """Longer sample entries, with the description inside of another box; what is no AAC is told apart from damage."""
    source = sounds.write(tmp_path / "s.mov", "aac", PCM)
    assert b"wave" in source.read_bytes()
    stream = opened(source.read_bytes())
    assert [packet.data for packet in stream.packets] == sounds.packets(source) and stream.skip == 1024
    for codec, name in (("pcm_s16le", "sowt"), ("alac", "alac"), ("mp3", "mp3|mp4a")):
        try:
            data = sounds.write(tmp_path / "t.mov", codec, PCM).read_bytes()
        except pytest.importorskip("av").FFmpegError:
            continue
        with pytest.raises(OtherSound, match=name):
            open_sound(io.BytesIO(data))
