"""MP4 written and read by our own: every sample with its time, long files, large files, damaged files."""

import io
import os
import random
import shutil
import struct
from fractions import Fraction

import pytest
from h264lite.mp4.avc import ParameterSets, to_byte_stream, to_sample, without_parameter_sets
from h264lite.mp4.boxes import mdat_header
from h264lite.mp4.layouts import AtEnd, Fragments, InPlace
from h264lite.mp4.movie import FILE_TYPE, Track, movie
from h264lite.mp4.muxer import Muxer
from h264lite.mp4.reader import Mp4Reader, is_mp4
from h264lite.mp4.samples import Sample, SampleTable
from h264lite.standard.bits import NAL_PPS, NAL_SPS, BitstreamError, nal_unit, split_byte_stream
from h264lite.standard.syntax import Pps, Sps, Vui, write_pps, write_sps
from hypothesis import given, settings
from hypothesis import strategies as st


def parameter_sets(**fields):
    """SPS and PPS in Annex B."""
    sps = Sps(**{"pic_width_in_mbs_minus1": 3, "pic_height_in_map_units_minus1": 2, "level_idc": 40, **fields})
    return nal_unit(NAL_SPS, 3, write_sps(sps)) + nal_unit(NAL_PPS, 3, write_pps(Pps(), sps) if sps.profile_idc > 99 else
                                                           write_pps(Pps()))  # fmt: skip


def access_unit(content, is_keyframe):
    """A NAL unit of a slice, whose content is no slice; keyframes begin with parameter sets."""
    return (parameter_sets() if is_keyframe else b"") + b"\0\0\1" + (b"\x65" if is_keyframe else b"\x41") + content


def in_layout(kind, path, seconds=None):
    """(layout, function that returns the file's bytes after `finish`) of one of the ways to write."""
    if kind == "in place":
        file = open(path, "w+b", buffering=0)
        return InPlace(lambda *parts: file.write(b"".join(parts)), lambda: os.fdopen(os.dup(file.fileno()), "r+b", 0)), \
            lambda: (file.close(), open(path, "rb").read())[1]  # fmt: skip
    out = io.BytesIO()
    write = lambda *parts: out.writelines(parts)  # noqa: E731
    return (Fragments(write, seconds) if kind == "fragments" else AtEnd(write, io.BytesIO())), out.getvalue


CONTENT = st.binary(max_size=40).map(lambda data: bytes(byte | 1 for byte in data) + b"\x80")
FRAMES = st.lists(st.tuples(CONTENT, st.integers(1, 5000), st.integers(-300, 300), st.booleans()), min_size=1, max_size=40)
BASES = st.sampled_from([Fraction(1, 25), Fraction(1001, 30000), Fraction(1, 90000), Fraction(1, 1), Fraction(7, 3)])


@settings(max_examples=100, deadline=None)
@given(FRAMES, BASES, st.sampled_from(["in place", "fragments", "at end"]), st.floats(0.01, 99), st.integers(0, 99))
def test_what_is_written_is_read(tmp_path_factory, frames, base, kind, seconds, delay):
    """Contents, times, keyframes of any frames; the times are shifted so that decoding begins at 0."""
    path = tmp_path_factory.mktemp("x") / "o.mp4"
    layout, result = in_layout(kind, path, seconds)
    muxer, dts, expected, stream = Muxer(layout, base), 1000, [], []
    for n, (content, step, offset, is_keyframe) in enumerate(frames):
        pts = dts + (delay if n == 0 else offset)
        muxer.add(access_unit(content, is_keyframe or n == 0), pts, dts, is_keyframe or n == 0, 77)
        duration = step if n + 1 < len(frames) else 77
        expected.append(((dts - 1000) * base, (pts - 1000) * base, duration * base, is_keyframe or n == 0))
        stream.append(b"\0\0\0\1" + (b"\x65" if is_keyframe or n == 0 else b"\x41") + content)
        dts += step
    muxer.finish()
    data = result()
    reader = Mp4Reader(io.BytesIO(data))
    times = [(Fraction(s.dts, reader.timescale), Fraction(s.pts, reader.timescale), Fraction(s.duration, reader.timescale),
              s.is_keyframe) for s in reader.samples()]  # fmt: skip
    assert times == expected
    assert b"".join(reader.byte_stream()) == parameter_sets() + b"".join(stream)
    assert (reader.fragments > 0) == (kind == "fragments") and reader.is_movie_in_front
    assert (b"elst" in data[:2000]) == (delay > 0)


def test_a_hundred_thousand_frames(tmp_path):
    """In place, an hour: stts is one run, the table is short, and the last frame is found."""
    layout, result = in_layout("in place", tmp_path / "o.mp4")
    muxer = Muxer(layout, Fraction(1001, 30000))
    for n in range(100_000):
        muxer.add(access_unit(struct.pack(">I", n | 0x80808080), n % 250 == 0), n, n, n % 250 == 0)
    muxer.finish()
    data = result()
    reader = Mp4Reader(io.BytesIO(data))
    samples = list(reader.samples())
    assert len(samples) == 100_000 and sum(sample.is_keyframe for sample in samples) == 400
    assert samples[-1].dts == 99_999 * 1001 and samples[-1].position + samples[-1].size == len(data)
    assert struct.unpack(">I", data[-4:])[0] == 99_999 | 0x80808080
    assert data.index(b"mdat") < 450_000  # stsz takes 400,000 of them


def test_positions_beyond_four_gigabytes(tmp_path):
    """A sparse file: co64, a size of mdat in 64 bits; FFmpeg finds the samples too."""
    sets = ParameterSets(to_sample(access_unit(b"\x80", True))[1])
    table, base = SampleTable(), 3 << 30
    units = [to_sample(access_unit(bytes([n, 0x80]), n == 1))[0] for n in range(1, 4)]
    positions = [base * n + 5000 for n in range(3)]
    for n, unit in enumerate(units):
        table.add_chunk([Sample(len(unit), 1000, 0, n == 0)], positions[n])
    head = FILE_TYPE + movie(Track(sets, 25000), table, positions)
    assert b"co64" in head and b"stco" not in head
    size = positions[-1] + len(units[-1]) - len(head) - 16
    with open(tmp_path / "o.mp4", "w+b") as file:
        file.write(head + mdat_header(size))
        for position, unit in zip(positions, units):
            file.seek(position)
            file.write(unit)
        assert list(Mp4Reader(file).byte_stream())[1:] == [to_byte_stream(unit, 4) for unit in units[1:]]
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "o.mp4")) as container:
        assert [bytes(packet) for packet in container.demux(video=0) if packet.size] == units


@pytest.mark.parametrize("delay", (0, 500))
def test_durations_beyond_32_bits(tmp_path, delay):
    """A timescale of a million and three frames of more than an hour: headers and edit list of version 1."""
    layout, result = in_layout("in place", tmp_path / "o.mp4")
    muxer = Muxer(layout, Fraction(1, 1_000_000))
    for n in range(3):
        step = 4_000_000_000
        muxer.add(access_unit(bytes([n + 1, 0x80]), n == 0), n * step, n * step - delay * (n == 0) // 2, n == 0, step)
    muxer.finish()
    data = result()
    reader = Mp4Reader(io.BytesIO(data))
    assert [sample.pts - delay // 2 for sample in reader.samples()] == [0, 4_000_000_000, 8_000_000_000]
    assert "12000.000 s" in reader.summary()
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(data)) as container:
        times = [packet.pts * packet.time_base for packet in container.demux(video=0) if packet.size]
        assert times == [0, 4000, 8000] and container.duration == 12000 * 1_000_000


@pytest.mark.slow
def test_a_large_file_is_moved(tmp_path):
    """4.3 GB of samples through the layout of files."""
    if shutil.disk_usage(tmp_path).free < 6 << 30:
        pytest.skip("needs 6 GiB of disk")
    path = tmp_path / "o.mp4"
    with open(path, "w+b", buffering=0) as file:
        layout = InPlace(lambda *parts: [file.write(part) for part in parts], lambda: open(path, "r+b", buffering=0))
        muxer = Muxer(layout, Fraction(1, 25))
        for n in range(86):
            muxer.add(access_unit(bytes([n + 1]) * 50_000_000, n % 10 == 0), n, n, n % 10 == 0)
        muxer.finish()
    with open(path, "rb") as file:
        reader = Mp4Reader(file)
        for n, sample in enumerate(reader.samples()):
            file.seek(sample.position + sample.size - 5)
            assert file.read(5) == bytes([n + 1]) * 5
        assert n == 85 and sample.position + sample.size == os.path.getsize(path) > 1 << 32
    path.unlink()


# The sample entry ----------------------------------------------------------------------------------------------------


def entry_of(**fields):
    return ParameterSets(to_sample(parameter_sets(**fields) + b"\0\0\1\x65\x80")[1])


def test_sample_entry():
    """Sizes, aspect ratios and colours, and the tail of avcC that High profiles have."""
    vui = Vui(aspect_ratio_info_present_flag=1, aspect_ratio_idc=2, video_signal_type_present_flag=1,
              colour_description_present_flag=1, colour_primaries=9, transfer_characteristics=16, matrix_coefficients=9,
              video_full_range_flag=1)  # fmt: skip
    sets = entry_of(vui_parameters_present_flag=1, vui=vui, profile_idc=100)
    entry = sets.sample_entry()
    assert struct.pack(">I4sII", 16, b"pasp", 12, 11) in entry
    assert struct.pack(">I4s4sHHHB", 19, b"colr", b"nclx", 9, 16, 9, 0x80) in entry
    assert struct.pack(">HH", 64, 48) == entry[32:36]
    assert sets.display_size == (Fraction(768, 11), 48)
    assert sets.configuration()[-4:] == bytes((0xFD, 0xF8, 0xF8, 0)) and sets.configuration()[8:12] == bytes((1, 100, 0, 40))
    plain = entry_of().sample_entry()
    assert b"pasp" not in plain and b"colr" not in plain
    assert entry_of().configuration()[8:14] == bytes((1, 66, 0, 40, 0xFF, 0xE1))


def test_what_a_sample_leaves_out():
    """Parameter sets, delimiters, filler data, ends of sequence and stream; SEI stays."""
    slice_, sei = b"\x65\x88\x80", b"\x06\x05\x01\x41\x80"
    units = [b"\x09\xf0", b"\x67\x42", b"\x68\x80", sei, slice_, b"\x0c\xff\x80", b"\x0a", b"\x0b"]
    stream = b"".join(b"\0\0\0\1" + unit for unit in units)
    sample, sets = to_sample(stream)
    assert sample == b"".join(struct.pack(">I", len(unit)) + unit for unit in (sei, slice_)) and sets == units[1:3]
    assert to_byte_stream(sample, 4) == b"\0\0\0\1" + sei + b"\0\0\0\1" + slice_
    assert without_parameter_sets(stream) == b"".join(b"\0\0\0\1" + unit for unit in units[:1] + units[3:])
    for size in (1, 2):
        assert to_byte_stream(b"\3".rjust(size, b"\0") + slice_, size) == b"\0\0\0\1" + slice_


@given(st.lists(st.sampled_from([b"\0", b"\0\0\1", b"\0\0\0\1", b"\x41\x80", b"\x67\x42", b"\x68\3", b"\x09"]), max_size=20))
def test_access_units_are_split_as_the_byte_stream_is(parts):
    """As standard.bits has it; parameter sets are given apart, and delimiters left out."""
    stream = b"".join(parts)
    try:
        units = [unit.data for unit in split_byte_stream(stream)]
    except BitstreamError:
        units = []
    expected = b"".join(struct.pack(">I", len(unit)) + unit for unit in units if unit[0] not in (0x67, 0x68, 9))
    if not expected:
        with pytest.raises(ValueError):
            to_sample(stream)
        return
    assert to_sample(stream) == (expected, [unit for unit in units if unit[0] in (0x67, 0x68)])


# Damage --------------------------------------------------------------------------------------------------------------


def some_files(path):
    """A movie and fragments of 30 frames, with ctts, stss and elst."""
    for kind in ("in place", "fragments"):
        layout, result = in_layout(kind, path, 0.2)
        muxer = Muxer(layout, Fraction(1, 25))
        for n in range(30):
            muxer.add(access_unit(bytes([n + 1] * 9), n % 10 == 0), n + 2 - n % 3, n * 1, n % 10 == 0)
        muxer.finish()
        yield result()


SIZES = b"stsz" + bytes(11) + b"\x1e"  # of 30 samples


def read_all(data):
    """All bytes of a file, or the error; nothing else may happen."""
    try:
        reader = Mp4Reader(io.BytesIO(data))
        return sum(len(piece) for piece in reader.byte_stream()), reader.summary()
    except BitstreamError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_by_name_or_read(tmp_path, seed):
    rng = random.Random(seed)
    for good in some_files(tmp_path / "o.mp4"):
        assert read_all(good)[0] == 30 * 14 + len(parameter_sets())
        for _ in range(400):
            data = bytearray(good)
            for _ in range(rng.choice((1, 1, 2, 5))):
                at, how = rng.randrange(len(data)), rng.randrange(5)
                if how == 0:
                    data[at] = rng.randrange(256)
                elif how == 1:
                    data[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1", b"\x7f\xff\xff\xff"))
                elif how == 2:
                    del data[at:]
                elif how == 3:
                    del data[at : at + rng.randrange(1, 40)]
                else:
                    data[at:at] = data[at : at + rng.randrange(1, 40)]
                if not data:
                    break
            result = read_all(bytes(data))
            assert isinstance(result, tuple) or result


@pytest.mark.parametrize(("change", "words"), [
    (lambda data: data.replace(b"avc1\0\0\0\0\0", b"hvc1\0\0\0\0\0"), "the video is hvc1, not H.264"),
    (lambda data: data.replace(b"vide", b"soun"), "holds no video"),
    (lambda data: data[: data.index(b"moov") - 4], "no moov"),
    (lambda data: data[:-20], "is not in the file"),
    (lambda data: data.replace(SIZES, SIZES[:12] + bytes([255] * 4)), "stsz names 4294967295"),
    (lambda data: data.replace(SIZES, SIZES[:11] + bytes([1, 255, 255, 255, 255])), "of a sample of 1 bytes"),
])  # fmt: skip
def test_refusals_say_what_is_wrong(tmp_path, change, words):
    good, _ = some_files(tmp_path / "o.mp4")
    assert change(good) != good
    assert words in read_all(change(good))


def test_samples_that_share_their_bytes_end(tmp_path):
    """A file of 100 kB that asks for 5 GB."""
    sets = ParameterSets(to_sample(access_unit(b"\x80", True))[1])
    unit, table = to_sample(access_unit(b"\1" * 50000, True))[0], SampleTable()
    for _ in range(10000):
        table.add_chunk([Sample(len(unit), 1, 0, True)], 0)
    track = Track(sets, 25000)
    begin = len(FILE_TYPE + movie(track, table, [0] * 10000)) + 8
    data = FILE_TYPE + movie(track, table, [begin] * 10000) + mdat_header(len(unit)) + unit
    assert "share their bytes" in read_all(data)


def test_fragments_that_are_cut_off_are_read_to_there(tmp_path):
    _, good = some_files(tmp_path / "o.mp4")
    last = good.rindex(b"moof") - 4
    whole = read_all(good[:last])[0]
    assert whole == 20 * 14 + len(parameter_sets())
    assert read_all(good[: last + 30])[0] == whole


def test_first_bytes():
    assert is_mp4(FILE_TYPE) and is_mp4(b"\0\0\0\1mdat")
    assert not is_mp4(b"\0\0\0\1\x67\x42\0\x1e") and not is_mp4(b"ftyp") and not is_mp4(b"")
