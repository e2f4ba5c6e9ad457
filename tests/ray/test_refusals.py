"""`encode --ray`: its value may be missing; what does not go with it is refused by name. Needs no Ray."""

import types

import pytest
from h264lite.cli.cli import join_values, main
from h264lite.cluster import connection
from h264lite.encoder.errors import DeviceError


@pytest.mark.parametrize(
    ("words", "joined"),
    [(["--ray", "in.yuv", "out.mp4"], "--ray="), (["in.yuv", "out.mp4", "--ray"], "--ray="), (["--ray", "--quiet"], "--ray="),
     (["--ray", "auto", "in.yuv"], "--ray=auto"), (["--ray", "10.0.0.1:6379"], "--ray=10.0.0.1:6379"),
     (["--ray=local"], "--ray=local")],
)  # fmt: skip
def test_an_address_may_be_missing(words, joined):
    words_joined = join_values(words)
    assert joined in words_joined
    assert ("--quiet" in words) == ("--quiet" in words_joined)
    assert ("in.yuv" in words) == ("in.yuv" in words_joined)


@pytest.mark.parametrize(
    ("words", "why"),
    [(["--ray", "--gops", "2"], "--gops with --ray"), (["--ray", "--devices", "cpu"], "--devices with --ray"),
     (["--ray", "--bitrate", "300"], "--bitrate with --ray"), (["--ray", "--device", "hybrid"], "--device hybrid with --ray"),
     (["--ray", "--trace", "t.json"], "--trace with --ray"), (["--ray-gpus", "1"], "--ray-gpus is for a cluster"),
     (["--ray=ray://a:1"], "Ray Client"), (["--ray=nowhere"], "not auto, local or HOST:PORT")],
)  # fmt: skip
def test_refusals(tmp_path, capsys, words, why):
    clip = tmp_path / "x_16x16.yuv"
    clip.write_bytes(bytes(16 * 24))
    assert main(["encode", str(clip), str(tmp_path / "out.264"), *words]) == 2
    assert why in capsys.readouterr().err


def test_a_ray_that_does_not_start_is_refused_by_name(monkeypatch):
    """It raises a plain Exception where its node takes too long."""

    def init(*_, **__):
        raise Exception("The current node timed out during startup.\nMore.")

    ray = types.SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setattr(connection, "import_ray", lambda: ray)
    with pytest.raises(DeviceError, match=r"^Ray at local: The current node timed out during startup\.$"):
        with connection.connected("local"):
            pass
