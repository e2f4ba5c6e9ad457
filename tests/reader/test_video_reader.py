"""VideoReader: places, slices, times, formats, colours, metadata, files, threads, forks, errors; what is decoded and kept."""

import io
import os
import pickle
import struct
import subprocess
import sys
import threading
from fractions import Fraction
from types import SimpleNamespace

import h264lite
import numpy as np
import pytest
from h264lite.decoder.colour import MATRICES, Planes
from h264lite.encoder.errors import OptionError

from ..support import foreign_movies, round_trip
from ..support.foreign_movies import B_FRAMES, FRAME, FRAMES, HEIGHT, MOVIES, WIDTH, box


@pytest.fixture(scope="module")
def data():
    return MOVIES["B frames"]()


@pytest.fixture(scope="module")
def stream():
    """Annex B without times."""
    return b"".join(packet for packet, *_ in foreign_movies.packets(B_FRAMES))


@pytest.fixture
def reader(data):
    with h264lite.VideoReader(data) as reader:
        yield reader


# Places and times ----------------------------------------------------------------------------------------------------


def test_indices_and_slices(reader):
    frames = list(reader)
    assert len(reader) == len(frames) == FRAMES and frames[0].shape == (HEIGHT, WIDTH, 3) and frames[0].dtype == np.uint8
    assert len({frame.tobytes() for frame in frames}) == FRAMES
    for index in (0, 7, np.int64(59), -1, -60):
        assert np.array_equal(reader[index], frames[index])
    for cut in (slice(3, 9), slice(None, None, 7), slice(-4, None), slice(40, 10, -5), slice(9, 9)):
        assert np.array_equal(reader[cut], np.array(frames[cut]).reshape(-1, HEIGHT, WIDTH, 3))
    for index in (60, -61):
        with pytest.raises(IndexError, match="of a video of 60 frames"):
            reader[index]
    for index in (1.0, "1", None):
        with pytest.raises(TypeError):
            reader[index]


def test_frames_at_places_in_any_order(reader):
    frames = list(reader)
    indices = [17, 3, 3, 59, -60, 18, 17]
    before = reader._pictures.decoded
    batch = reader.get_frames_at(indices)
    assert np.array_equal(batch.data, np.array([frames[index] for index in indices]))
    assert batch.pts_seconds.tolist() == [reader.timestamps[index] for index in indices]
    assert batch.duration_seconds.tolist() == pytest.approx([1 / 30] * 7, abs=1e-3)
    assert reader._pictures.decoded - before <= 12 + 12 + 12  # three GOPs, once each
    assert reader.get_frames_at([]).data.shape == (0, HEIGHT, WIDTH, 3)
    batch.data[:] = 0  # belongs to the caller
    assert np.array_equal(reader[17], frames[17])


def test_ranges_and_batches(reader):
    frames = np.array(list(reader))
    assert np.array_equal(reader.get_frames_in_range(5, 20, 4).data, frames[5:20:4])
    assert len(reader.get_frames_in_range(60, 60).data) == 0
    for ends in ((0, 61), (-1, 5), (6, 5)):
        with pytest.raises(IndexError):
            reader.get_frames_in_range(*ends)
    with pytest.raises(OptionError, match="step"):
        reader.get_frames_in_range(0, 9, 0)
    sizes = [len(batch.data) for batch in reader.batches(25)]
    assert sizes == [25, 25, 10] and np.array_equal(np.concatenate([b.data for b in reader.batches(25)]), frames)
    with pytest.raises(OptionError, match="size"):
        reader.batches(0)


def test_times():
    """A frame is shown from its time on until the next one's."""
    with h264lite.VideoReader(MOVIES["variable rate"]()) as reader:
        times, ends = reader.timestamps, reader.timestamps + reader.durations
        assert times[1:].tolist() == pytest.approx(ends[:-1].tolist(), abs=1e-12)
        for index in (0, 1, 31, 59):
            for seconds in (times[index], (times[index] + ends[index]) / 2, np.nextafter(ends[index], 0) - 1e-9):
                frame = reader.get_frame_played_at(seconds)
                assert frame.pts_seconds == times[index] and np.array_equal(frame.data, reader[index])
        for seconds in (-0.001, ends[-1], float("nan")):
            with pytest.raises(IndexError, match="s of a video from"):
                reader.get_frame_played_at(seconds)
        batch = reader.get_frames_played_at([times[5], times[2], times[5] + 0.001])
        assert batch.pts_seconds.tolist() == [times[5], times[2], times[5]]
        batch = reader.get_frames_played_in_range(times[4] + 0.001, times[9])
        assert batch.pts_seconds.tolist() == times[4:9].tolist()
        assert reader.get_frames_played_in_range(times[4], times[4] + 1e-6).pts_seconds.tolist() == [times[4]]
        assert len(reader.get_frames_played_in_range(0.5, 0.5).data) == 0
        assert len(reader.get_frames_played_in_range(0, 1e9).data) == FRAMES
        with pytest.raises(OptionError, match="stop_seconds"):
            reader.get_frames_played_in_range(1, 0.5)


def test_sequences_decode_each_picture_once(data):
    """Forwards, by two, and with steps back; backwards each GOP at most once for `nearby` frames."""
    for indices, most in ((range(FRAMES), 60), (range(0, FRAMES, 2), 60), ([n - n % 3 for n in range(FRAMES)], 60),
                          ([n + k for n in range(2, FRAMES - 2) for k in (0, -2, 2)], 60)):  # fmt: skip
        with h264lite.VideoReader(data) as reader:
            for index in indices:
                reader[index]
            assert reader._pictures.decoded <= most
    with h264lite.VideoReader(data, nearby=12) as reader:
        for index in reversed(range(FRAMES)):
            reader[index]
        assert reader._pictures.decoded <= 60 and len(reader._pictures._kept) <= 12 + 4


def test_pictures_without_use_are_left_out(data):
    """On the way to a frame far away B frames that none refers to are not decoded."""
    with h264lite.VideoReader(data, nearby=0) as reader:
        reader[11]  # of 12 frames of a GOP: I, three P, eight B
        assert reader._pictures.decoded <= 6
        assert np.array_equal(reader[11], list(reader)[11])


def test_times_that_are_no_order_of_output(data):
    """All frames are given, and no more are kept than the limits."""
    with h264lite.VideoReader(data, format="planes", nearby=2) as reader:
        reader._pictures._rank[:] = reader._pictures._rank[::-1].copy()
        for index in range(FRAMES):
            reader[index]
            assert len(reader._pictures._kept) <= 2 + 32


# Formats and colours -------------------------------------------------------------------------------------------------


def exact_rgb(planes, matrix, full):
    """float64[H, W, 3] by E.2.1, each chroma sample for four luma samples."""
    red, blue = MATRICES[matrix]
    y, u, v = (np.asarray(plane, np.float64) for plane in planes)
    u, v = (np.repeat(np.repeat(plane, 2, 0), 2, 1) - 128 for plane in (u, v))
    y, u, v = (y, u, v) if full else ((y - 16) * 255 / 219, u * 255 / 224, v * 255 / 224)
    r, b = y + 2 * (1 - red) * v, y + 2 * (1 - blue) * u
    return np.stack([r, (y - red * r - blue * b) / (1 - red - blue), b], -1)


@pytest.mark.parametrize("name, matrix", [("bt601", 6), ("bt709", 1), ("bt2020nc", 9), ("smpte240m", 7), ("fcc", 4)])
@pytest.mark.parametrize("range_", ["tv", "pc"])
def test_rgb_is_that_of_the_matrix(data, name, matrix, range_):
    planes = h264lite.VideoReader(data, format="planes")[10]
    expected = exact_rgb(planes, matrix, range_ == "pc")
    rgb = h264lite.VideoReader(data, colormatrix=name, range=range_)[10]
    assert np.abs(rgb - np.clip(expected, 0, 255)).max() < 0.5001  # to the nearest; ties either way
    options = {"colormatrix": name, "range": range_}
    assert np.array_equal(h264lite.VideoReader(data, format="bgr", **options)[10], rgb[..., ::-1])
    first = h264lite.VideoReader(data, dimension_order="NCHW", **options)
    assert np.array_equal(first[10], rgb.transpose(2, 0, 1)) and first[3:5].shape == (2, 3, HEIGHT, WIDTH)


def test_grey_and_planes(data):
    planes = h264lite.VideoReader(data, format="planes")[10:12]
    assert isinstance(planes, Planes)
    assert [plane.shape for plane in planes] == [(2, HEIGHT, WIDTH), *[(2, HEIGHT // 2, WIDTH // 2)] * 2]
    grey = h264lite.VideoReader(data, format="gray")[10]
    assert np.array_equal(grey, np.clip(np.floor((planes.y[0] - 16.0) * 255 / 219 + 0.5), 0, 255))
    assert np.array_equal(h264lite.VideoReader(data, format="gray", range="pc")[10], planes.y[0])


@pytest.mark.parametrize("words", [{"colormatrix": "bt709", "range": "tv"}, {"colormatrix": "smpte170m", "range": "pc"}, {}])
def test_colours_are_those_that_the_stream_says(words):
    """VUI of a byte stream; without one BT.601, limited, as FFmpeg."""
    frames = [tuple(frame) for frame in round_trip.noise_clip(64, 48, 2, 3)]
    coded = h264lite.encode(frames, format="i420", qp=20, **words)
    with h264lite.VideoReader(coded) as reader:
        own = {"colormatrix": words.get("colormatrix", "bt601"), "range": words.get("range", "tv")}
        assert np.array_equal(reader[1], h264lite.VideoReader(coded, **own)[1])
        assert reader.metadata.color_space == words.get("colormatrix") and reader.metadata.color_range == own["range"]


def test_rgb_goes_there_and_back():
    """What write_video was given comes back, but for quantisation."""
    y, x = np.mgrid[:96, :128]
    frame = np.stack([2 * x, 255 - 2 * y, x + y], -1).clip(0, 255).astype(np.uint8)
    with h264lite.VideoReader(h264lite.write_video(None, [frame] * 3, fps=24, qp=4)) as reader:
        assert reader.metadata.color_space == "bt709" and reader.metadata.color_primaries == "bt709"
        assert np.abs(reader[1].astype(int) - frame).mean() < 1.5


def test_colours_of_the_container(data):
    """colr and pasp count where the stream says nothing."""
    assert b"colr" not in data
    colour = box(b"colr", b"nclx", struct.pack(">HHHB", 9, 16, 9, 0x80))
    old = box(b"colr", b"nclc", struct.pack(">HHH", 1, 1, 1))
    for more, space, tone, full in ((colour, "bt2020nc", "smpte2084", "pc"), (old, "bt709", "bt709", "tv"),
                                    (box(b"colr", colour[8:-1]), None, None, "tv")):  # fmt: skip
        more += box(b"pasp", struct.pack(">II", 4, 3))
        boxes = {b"avc1": lambda body, more=more: body[:78] + without(body[78:], b"pasp") + more}
        with h264lite.VideoReader(rewritten(data, boxes)) as reader:
            facts = reader.metadata
            assert (facts.color_space, facts.color_transfer_characteristic, facts.color_range) == (space, tone, full)
            assert facts.pixel_aspect_ratio == Fraction(4, 3)
            assert np.array_equal(reader[0], h264lite.VideoReader(data, colormatrix=space or "bt601", range=full)[0])


def without(boxes, kind):
    """Boxes without those of a kind."""
    place, kept = 0, b""
    while place < len(boxes):
        size, name = struct.unpack_from(">I4s", boxes, place)
        kept += b"" if name == kind else boxes[place : place + size]
        place += size
    return kept


PATH = {b"moov": 0, b"trak": 0, b"mdia": 0, b"minf": 0, b"stbl": 0, b"stsd": 8}  # bytes before the boxes inside


def rewritten(data, change):
    """A file whose moov is last, with other contents of boxes: {kind: function of the contents}."""
    at = data.rindex(b"moov") - 4

    def boxes(contents):
        place, out = 0, b""
        while place < len(contents):
            size, kind = struct.unpack_from(">I4s", contents, place)
            body = contents[place + 8 : place + size]
            if kind in PATH:
                body = body[: PATH[kind]] + boxes(body[PATH[kind] :])
            out += box(kind, change.get(kind, bytes)(body))
            place += size
        return out

    return data[:at] + boxes(data[at:])


# Metadata ------------------------------------------------------------------------------------------------------------


def test_metadata(reader, data, stream):
    facts = reader.metadata
    assert (facts.container, facts.codec, facts.profile, facts.level) == ("mp4", "h264", "High", "1")
    assert (facts.width, facts.height, facts.num_frames, facts.rotation) == (WIDTH, HEIGHT, FRAMES, 0)
    assert facts.begin_stream_seconds == 0 and facts.end_stream_seconds == facts.duration_seconds == 2
    assert facts.average_fps == FRAMES / facts.duration_seconds and facts.bit_rate == 8 * len(data) / facts.duration_seconds
    assert facts.fps == 30 and facts.pixel_aspect_ratio in (None, 1)
    assert reader.key_frames.tolist() == [0, 12, 24, 36, 48]
    assert "60 frames of 80x64" in repr(reader)
    assert h264lite.VideoReader(MOVIES["variable rate"]()).metadata.fps is None
    bare = h264lite.VideoReader(stream)
    assert bare.metadata.container == "annexb" and bare.metadata.fps == 600  # as libx264 writes it for such times
    assert bare.key_frames.tolist() == [0, 12, 24, 36, 48]
    assert h264lite.VideoReader(stream, fps="24000/1001").timestamps[24] == 24 * 1001 / 24000
    assert np.array_equal(bare[0:60], reader[0:60])


def test_rotation(data):
    def turned(contents):  # tkhd of version 0
        return contents[:40] + struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30) + contents[76:]

    with h264lite.VideoReader(rewritten(data, {b"tkhd": turned})) as reader:
        assert reader.metadata.rotation == 90 and reader[0].shape == (HEIGHT, WIDTH, 3)


# Files, processes, threads -------------------------------------------------------------------------------------------


class Pipe(io.RawIOBase):
    """A file that can only be read on."""

    def __init__(self, data):
        self._data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._data.readinto(buffer)


@pytest.mark.parametrize("kind", ["name", "path", "bytes", "bytearray", "memoryview", "BytesIO", "file", "pipe"])
@pytest.mark.parametrize("form", ["mp4", "annexb"])
def test_sources(data, stream, tmp_path, kind, form):
    content = data if form == "mp4" else stream
    path = tmp_path / "video"
    path.write_bytes(content)
    file = {"file": lambda: open(path, "rb"), "BytesIO": lambda: io.BytesIO(content)}.get(kind, lambda: None)()
    if file is not None:
        file.seek(100)  # read from its beginning on
    video = {"name": str(path), "path": path, "bytes": content, "bytearray": bytearray(content),
             "memoryview": memoryview(content), "pipe": Pipe(content)}.get(kind, file)  # fmt: skip
    with h264lite.VideoReader(video, format="planes") as reader:
        assert reader.metadata.container == form and len(reader) == FRAMES
        assert np.array_equal(reader[37].y, h264lite.VideoReader(data, format="planes")[37].y)
    with pytest.raises(ValueError, match="closed"):
        reader[37]
    if file is not None:
        assert not file.closed
        file.close()


def test_what_is_no_video(tmp_path):
    for video in (1, io.StringIO("x"), ["a.mp4"], None):
        with pytest.raises(TypeError, match="a video is the name of a file, bytes or a binary file"):
            h264lite.VideoReader(video)
    with pytest.raises(FileNotFoundError):
        h264lite.VideoReader(tmp_path / "none.mp4")
    for content, words in ((b"", "no frames"), (b"hello, this is text", "Annex B"), (box(b"ftyp", b"isom"), "no moov")):
        with pytest.raises(h264lite.BitstreamError, match=words):
            h264lite.VideoReader(content)


def test_options_are_refused_by_name(data):
    for words in ({"format": "yuv"}, {"dimension_order": "HWC"}, {"colormatrix": "bt7"}, {"range": "full"}, {"nearby": -1},
                  {"fps": "x"}):  # fmt: skip
        with pytest.raises(OptionError, match=next(iter(words))):
            h264lite.VideoReader(data, **words)


def test_a_thread_at_a_time(reader):
    """Another thread that comes meanwhile is told; afterwards all goes on."""
    inside, leave, told = threading.Event(), threading.Event(), []
    picture = reader._pictures.picture

    def slow(n):
        inside.set()
        assert leave.wait(30)
        return picture(n)

    reader._pictures.picture = slow
    thread = threading.Thread(target=lambda: told.append(reader[5]))
    thread.start()
    assert inside.wait(30)
    with pytest.raises(RuntimeError, match="at work in another thread"):
        reader[6]
    leave.set()
    thread.join()
    assert np.array_equal(reader[5], told[0])


def test_readers_are_pickled_and_forked(data, tmp_path):
    path = tmp_path / "video.mp4"
    path.write_bytes(data)
    for video in (path, data):
        with h264lite.VideoReader(video, format="gray", nearby=3) as reader:
            again = pickle.loads(pickle.dumps(reader))
            assert np.array_equal(again[20], reader[20]) and again._pictures._nearby == 3
            child = os.fork()
            if not child:
                same = all(np.array_equal(reader[n], again[n]) for n in (40, 3, 59))
                os._exit(0 if same else 1)
            assert all(np.array_equal(reader[n], again[n]) for n in (10, 55, 30))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(h264lite.VideoReader(io.BytesIO(data)))


# Tensors -------------------------------------------------------------------------------------------------------------


def test_frames_are_dlpack(reader):
    frame = np.from_dlpack(reader[3])
    assert np.array_equal(frame, reader[3]) and reader[3].flags.writeable and reader[3].flags.c_contiguous


def test_tensors_of_a_device(data, monkeypatch):
    """By PyTorch's own functions, each batch once; a stand-in sees what is called."""
    moved = []

    class Tensor:
        def __init__(self, array):
            self.array = array

        def to(self, device):
            moved.append((device, self.array.shape))
            return self

        def __getitem__(self, key):
            return self.array[key]

    torch = SimpleNamespace(from_numpy=Tensor, device=lambda name: name)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with h264lite.VideoReader(data, device="cuda:1", dimension_order="NCHW") as reader:
        assert np.array_equal(reader[2:4].array, h264lite.VideoReader(data, dimension_order="NCHW")[2:4])
    assert moved == [("cuda:1", (2, 3, HEIGHT, WIDTH))]
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(OptionError, match="device 'cuda': needs PyTorch"):
        h264lite.VideoReader(data, device="cuda")


def test_tensors_of_pytorch(data):
    torch = pytest.importorskip("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with h264lite.VideoReader(data, device=device, dimension_order="NCHW") as reader:
        tensor = reader.get_frames_in_range(5, 9).data
        assert tensor.device.type == device and tensor.dtype == torch.uint8 and tuple(tensor.shape) == (4, 3, HEIGHT, WIDTH)
        assert np.array_equal(tensor.cpu().numpy(), h264lite.VideoReader(data, dimension_order="NCHW")[5:9])
        assert reader[3].device.type == device
    with pytest.raises(OptionError, match="device"):
        h264lite.VideoReader(data, device="gpu")


# Damage --------------------------------------------------------------------------------------------------------------


def test_a_damaged_frame_is_named_and_others_are_read(data):
    with h264lite.VideoReader(data, format="planes") as whole:
        units, rank = whole._index.units, whole._index.rank
        sample = 12 + 1  # a P picture of the second GOP, which its B pictures need
        position, size = int(units._positions[sample]), int(units._sizes[sample])
        broken = bytearray(data)
        broken[position + 4 + 2 : position + size] = bytes(size - 6)
        with h264lite.VideoReader(bytes(broken), format="planes") as reader:
            for _ in range(2):
                words = f"frame {rank[sample]}: NAL unit .* at byte {position + 4}"
                with pytest.raises(h264lite.BitstreamError, match=words):
                    reader[int(rank[sample])]
                for index in (0, 11, 24, 59):
                    assert np.array_equal(reader[index].y, whole[index].y)


@pytest.mark.parametrize("part", [0.3, 0.7, 0.97])
def test_a_cut_file_is_refused(data, stream, part):
    front = foreign_movies.movie("mp4", B_FRAMES, movflags="+faststart")
    for content in (data, front):
        with pytest.raises(h264lite.BitstreamError):
            h264lite.VideoReader(content[: int(len(content) * part)])
    with h264lite.VideoReader(stream[: int(len(stream) * part)]) as reader:  # headers alone do not tell
        assert 0 < len(reader) < FRAMES
        assert np.array_equal(reader[0], h264lite.VideoReader(data)[0])


def test_edit_lists_of_hostile_files(data):
    """They end in an error or in as many frames as a file may have."""
    many = foreign_movies.with_edits(data, *[(2000, 0)] * 100)
    with pytest.raises(h264lite.BitstreamError, match="more than 16 times"):
        h264lite.VideoReader(many)
    with pytest.raises(h264lite.BitstreamError, match="10001 edits"):
        h264lite.VideoReader(foreign_movies.with_edits(data, *[(1, -1)] * 10001))
    with pytest.raises(h264lite.BitstreamError, match="shows no frame"):
        h264lite.VideoReader(foreign_movies.with_edits(data, (1000, 10**6 * FRAME)))
    with pytest.raises(h264lite.BitstreamError, match="timescale 0"):
        h264lite.VideoReader(rewritten(data, {b"mvhd": lambda body: bytes(16) + body[16:]}))


UNSUPPORTED = """
import sys
import h264lite
assert "numba" not in sys.modules and "torch" not in sys.modules and "av" not in sys.modules
h264lite.VideoReader(sys.argv[1])
assert "torch" not in sys.modules and "av" not in sys.modules
"""


def test_reading_imports_no_torch_and_no_pyav(data, tmp_path):
    path = tmp_path / "video.mp4"
    path.write_bytes(data)
    done = subprocess.run([sys.executable, "-c", UNSUPPORTED, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_other_codecs_and_tools_are_refused_by_name(data):
    with pytest.raises(h264lite.BitstreamError, match="the video is hvc1"):
        h264lite.VideoReader(data.replace(b"avc1", b"hvc1"))
    interlaced = b"".join(packet for packet, *_ in foreign_movies.packets(f"{B_FRAMES}:tff=1:interlaced=1"))
    with pytest.raises(h264lite.Unsupported, match="interlaced coding"):
        h264lite.VideoReader(interlaced)
    with pytest.raises(h264lite.Unsupported, match="interlaced coding"):
        h264lite.VideoReader(foreign_movies.movie("mp4", f"{B_FRAMES}:tff=1:interlaced=1"))
