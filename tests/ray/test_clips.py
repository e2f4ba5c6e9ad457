"""`h264lite.ray.Encode`: the bytes of write_video, in Ray Data and called by itself; what a bad row says."""

import io

import h264lite
import h264lite.ray
import numpy as np
import pytest
from h264lite.cluster import clips
from h264lite.cluster.resources import ordinal_of
from h264lite.encoder.errors import InputError, OptionError
from h264lite.ray import Encode
from h264lite.samples import make_clip

OPTIONS = {"qp": 34, "preset": "ultrafast", "device": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(5)
    return [rng.integers(0, 255, (3, 48, 64, 3), np.uint8) for _ in range(3)]


@pytest.fixture(scope="module")
def wanted(arrays):
    return [h264lite.write_video(None, array, 25, **OPTIONS) for array in arrays]


def column(values):
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


def test_forms_of_clips(arrays, wanted):
    stage = Encode(**OPTIONS)
    for frames in (np.stack(arrays), column(arrays), column([list(array) for array in arrays]),
                   column([column(list(array)) for array in arrays])):
        out = stage({"id": np.arange(3), "frames": frames})
        assert list(out) == ["id", "video"]
        assert list(out["video"]) == wanted


def test_columns_are_named_by_the_user(arrays, wanted, tmp_path):
    paths = [str(tmp_path / f"{k}.mp4") for k in range(3)]
    stage = Encode("clip", "out", target="path", fps="rate", **OPTIONS)
    out = stage({"clip": np.stack(arrays), "path": np.array(paths), "rate": np.array([25, 25, 50])})
    assert list(out["out"]) == paths
    assert [open(path, "rb").read() for path in paths[:2]] == wanted[:2]
    assert open(paths[2], "rb").read() == h264lite.write_video(None, arrays[2], 50, **OPTIONS)
    assert len(list(tmp_path.iterdir())) == 3  # no parts


def test_paths_are_read_with_their_rate(tmp_path):
    y4m = tmp_path / "clip.y4m"
    make_clip.write_clip(y4m, 64, 48, 4, fps=30)
    out = Encode("path", **OPTIONS)({"path": np.array([str(y4m)])})["video"][0]
    planes = list(make_clip.make_frames(64, 48, 4))
    assert out == h264lite.write_video(None, planes, 30, sar="1:1", **OPTIONS)


def test_what_a_file_has_besides_is_told(tmp_path):
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "clip.mkv"), "w") as out:
        out.metadata["title"] = "T"
        stream = out.add_stream("ffv1", rate=25, width=64, height=48, pix_fmt="yuv420p")
        out.add_stream("pcm_s16le", rate=48000, layout="mono")
        out.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        out.mux(stream.encode(None))
    with pytest.warns(RuntimeWarning, match="clip.mkv: left out: sound, the title$"):
        Encode("path", **OPTIONS)({"path": np.array([str(tmp_path / "clip.mkv")])})


@pytest.mark.parametrize(
    ("clip", "why"),
    [(None, "null"), (b"abc", "bytes"), ("absent.y4m", "absent.y4m"), (np.zeros(7, np.uint8), "shape"), ([], "no frames")],
)
def test_a_bad_row(arrays, wanted, clip, why, tmp_path):
    batch = {"id": np.arange(3), "frames": column([arrays[0], clip, arrays[2]])}
    with pytest.raises(InputError, match=rf"row 1 of the batch, column 'frames': .*{why}.*\[id=1\]"):
        Encode(**OPTIONS)(batch)
    out = Encode(on_error="null", **OPTIONS)(batch)
    assert list(out["video"]) == [wanted[0], None, wanted[2]]
    assert why in out["video_error"][1]
    assert out["video_error"][0] is None


def test_a_file_that_fails_leaves_none(tmp_path):
    batch = {"frames": column([[np.zeros((16, 16, 3), np.uint8), np.zeros(7, np.uint8)]]), "to": [str(tmp_path / "a.mp4")]}
    assert Encode(target="to", on_error="null", **OPTIONS)(batch)["video"][0] is None
    assert list(tmp_path.iterdir()) == []


def test_refusals(arrays):
    for words, why in (({"qp": 60}, "qp 60"), ({"pass_": 2}, "pass_ is for one video"), ({"on_error": "skip"}, "on_error"),
                       ({"nonsense": 1}, "nonsense"), ({"audio": "a.wav"}, "audio is for one video")):
        with pytest.raises(OptionError, match=why):
            Encode(**{**OPTIONS, **words})
    with pytest.raises(OptionError, match="no such column, but clip"):
        Encode(**OPTIONS)({"clip": np.stack(arrays)})
    with pytest.raises(OptionError, match="fps rate"):
        Encode(fps="rate", **OPTIONS)({"frames": np.stack(arrays)})
    with pytest.raises(InputError, match="use batch_format"):
        Encode(**OPTIONS)(io.BytesIO())


def test_device_and_threads_are_those_that_ray_gives(monkeypatch):
    """On a GPU only where Ray gives one."""
    monkeypatch.setattr(clips, "assigned", lambda: (3, 0.0))
    monkeypatch.setattr(clips, "device", lambda: "cpu")
    stage = Encode(qp=34, preset="ultrafast")
    assert stage._options["device"] == "cpu"
    assert stage._options["threads"] == 3
    monkeypatch.setattr(clips, "device", lambda: "cuda:1")
    assert stage._where({"crf": 20}) == {"crf": 20, "devices": ("cuda:1",), "threads": 3}
    assert stage._where({"device": "cpu", "threads": 2}) == {"device": "cpu", "threads": 2}


@pytest.mark.parametrize(("gpu", "visible", "number"), [(2, None, 2), ("2", "2", 0), (5, "4,5", 1), ("0", "", 0)])
def test_numbers_of_gpus(gpu, visible, number):
    assert ordinal_of(gpu, visible) == number


def test_map_batches(arrays, wanted):
    from .started import ray, started

    data = pytest.importorskip("ray.data", reason="Ray Data is not installed")
    with started(2):
        dataset = data.from_items([{"id": k, "frames": array} for k, array in enumerate(arrays)])
        words = {"concurrency": 1, "num_cpus": 1, "batch_size": 2}
        stage = {"qp": 34, "preset": "ultrafast"}
        rows = dataset.map_batches(h264lite.ray.Encode, fn_constructor_kwargs=stage, **words).take_all()
        assert {row["id"]: row["video"] for row in rows} == dict(enumerate(wanted))
        bad = data.from_items([{"id": 7, "frames": np.zeros(7, np.uint8)}])
        with pytest.raises(ray.exceptions.RayError, match=r"row 0 of the batch, column 'frames'"):
            bad.map_batches(h264lite.ray.Encode, fn_constructor_kwargs=stage, **words).take_all()
