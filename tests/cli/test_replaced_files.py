"""Files that are written beside and take their place when they are whole; files that have one writer; devices that stay."""

import os
import stat
import threading

import pytest
from h264lite.cli import cli
from h264lite.cli.tune import check_writable
from h264lite.encoder.errors import OutputError
from h264lite.encoder.files.output import ByteSink
from h264lite.files import Replacement, WholeFile, is_special, replace_file
from h264lite.report.page_file import PageFile

from ..support import round_trip

FAST = ("--preset", "ultrafast", "--quiet", "--threads", "1", "--device", "cpu")
WIDTH, HEIGHT = 32, 32


@pytest.fixture
def clip(tmp_path):
    return round_trip.write_raw(round_trip.noise_clip(WIDTH, HEIGHT, 3, 1), tmp_path)


@pytest.fixture
def node(tmp_path):
    """A device of the test's own that takes everything, as /dev/null does."""
    path = tmp_path / "node"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.write_bytes(b"x")
    except OSError:
        pytest.skip("devices cannot be made here: that needs root")
    yield path
    assert stat.S_ISCHR(os.stat(path).st_mode), "the device was replaced or removed"


def encode(*words):
    return cli.main(["encode", *map(str, words), *FAST])


# Replacement ---------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_and_keeps_its_mode_its_link_and_its_other_names(tmp_path):
    target, link, other = tmp_path / "t.txt", tmp_path / "link.txt", tmp_path / "other"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target.name)
    os.link(target, other)
    replace_file(str(link), b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and other.read_bytes() == b"old"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    target.unlink()
    replace_file(str(link), b"made")
    assert link.is_symlink() and target.read_bytes() == b"made"
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~_umask()
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "other", "t.txt"]


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_part_has_a_new_name_each_time_and_goes_if_nothing_comes_of_it(tmp_path):
    target = tmp_path / "a name.ending"
    parts = []
    for _ in range(2):
        replacement = Replacement(str(target))
        parts.append(replacement.temporary)
        assert replacement.temporary.endswith(".ending") and os.path.dirname(replacement.temporary) == str(tmp_path)
        assert stat.S_ISREG(os.lstat(replacement.temporary).st_mode)
        replacement.discard()
        replacement.discard()
    assert len(set(parts)) == 2 and not os.listdir(tmp_path)
    with pytest.raises(OSError, match="No such file") as caught:
        Replacement(str(tmp_path / "none" / "x"))
    assert caught.value.filename == str(tmp_path / "none" / "x")
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path), b"data")
    long = tmp_path / ("n" * 250 + ".html")
    replace_file(str(long), b"data")
    assert long.read_bytes() == b"data" and os.listdir(tmp_path) == [long.name]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_what_fails_in_between_leaves_the_earlier_file_and_nothing_else(tmp_path, monkeypatch, error):
    target = tmp_path / "t"
    target.write_bytes(b"old")

    def fails(fd, data):
        raise error

    monkeypatch.setattr(os, "write", fails)
    with pytest.raises(type(error)) as caught:
        replace_file(str(target), b"new")
    monkeypatch.undo()
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["t"]
    assert not isinstance(error, OSError) or caught.value.filename == str(target)


def test_pipes_and_devices_are_written_directly(tmp_path, node):
    replace_file(str(node), b"data")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    replace_file(str(pipe), b"data")
    reader.join()
    assert got == [b"data"] and stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert is_special(node) and is_special(pipe) and is_special("/dev/stdout") and not is_special(tmp_path / "none")


# Who writes files so ---------------------------------------------------------------------------------------------------


def test_statistics_to_a_device(tmp_path, clip, node):
    assert encode(clip, tmp_path / "o.264", "--pass", "1", "--bitrate", "100", "--stats", node) == 0


def test_statistics_follow_no_link_that_lies_beside_and_know_no_part_of_a_name(tmp_path, clip):
    """NAME.part is a name like any other: it was followed, emptied, or became the statistics."""
    precious, stats = tmp_path / "precious", tmp_path / "s"
    precious.write_bytes(b"precious")
    (tmp_path / "s.part").symlink_to(precious)
    words = ("--pass", "1", "--bitrate", "100", "--stats", stats)
    assert encode(clip, tmp_path / "o.264", *words) == 0
    assert precious.read_bytes() == b"precious" and stats.read_text().startswith("h264lite-statistics")
    (tmp_path / "s.part").unlink()
    os.link(clip, tmp_path / "s.part")
    assert encode(clip, tmp_path / "o.264", *words) == 0
    (tmp_path / "s.part").unlink()
    assert encode(clip, tmp_path / "s.part", "--muxer", "raw", *words) == 0
    assert (tmp_path / "s.part").read_bytes() == (tmp_path / "o.264").read_bytes()
    assert stats.read_text().startswith("h264lite-statistics")
    link = tmp_path / "link"
    link.symlink_to(stats)
    stats.write_bytes(b"")
    assert encode(clip, tmp_path / "o.264", "--pass", "1", "--bitrate", "100", "--stats", link) == 0
    assert link.is_symlink() and stats.read_text().startswith("h264lite-statistics")


def test_the_default_name_of_statistics_is_told_apart_too(tmp_path, clip, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    clip.rename("h264lite_2pass.log")
    before = (tmp_path / "h264lite_2pass.log").read_bytes()
    words = ("--input-res", f"{WIDTH}x{HEIGHT}", "--demuxer", "raw", "--pass", "1", "--bitrate", "100")
    assert encode("h264lite_2pass.log", "o.264", *words) == 2
    assert "stats and input are the same" in capfd.readouterr().err
    assert (tmp_path / "h264lite_2pass.log").read_bytes() == before


def test_files_that_are_read_are_no_outputs(tmp_path, clip, capfd):
    given = tmp_path / "given"
    given.write_text("0 I 20\n")
    for option in ("--qpfile", "--tuning", "--cqm"):
        assert encode(clip, tmp_path / "o.264", option, given, "--csv", given) == 2
        assert f"csv and {option[2:]} are the same" in capfd.readouterr().err
    assert given.read_text() == "0 I 20\n"


@pytest.mark.parametrize("muxer", ("raw", "mp4", "mkv", "mov"))
def test_a_stream_to_a_device(clip, node, muxer):
    if muxer in ("mkv", "mov"):
        pytest.importorskip("av", reason="PyAV writes this container")
    assert encode(clip, node, "--muxer", muxer) in (0, 1)  # a device has no replacement to go back to in .mov


def test_a_page_that_fails_leaves_the_device_or_the_earlier_page(tmp_path, node):
    page = PageFile(str(node), "title")
    page.add("a", b"data")
    page.close()
    old = tmp_path / "old.html"
    old.write_bytes(b"old")
    page = PageFile(str(old), "title", in_page=0)
    page.add("a", b"data")
    page.close()
    page.close()
    assert old.read_bytes() == b"old" and sorted(os.listdir(tmp_path)) == ["node", "old.html", "old_files"]
    assert not os.listdir(tmp_path / "old_files")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "old_files" / "a.js").symlink_to(victim)
    page = PageFile(str(old), "title", in_page=0)
    page.add("b", b"data")
    page.finish({})
    page.close()
    assert old.read_bytes().startswith(b"<!doctype html>") and (tmp_path / "old_files" / "b.js").exists()


def test_a_look_whether_tuning_can_be_written_touches_nothing(tmp_path):
    victim = tmp_path / "victim"
    (tmp_path / ".t.toml.probe").symlink_to(victim)
    check_writable(tmp_path / "t.toml")
    assert not victim.exists() and os.listdir(tmp_path) == [".t.toml.probe"]
    with pytest.raises(OutputError, match="irectory"):
        check_writable(tmp_path)


# One writer at a time --------------------------------------------------------------------------------------------------


def test_a_second_writer_of_a_file_is_refused(tmp_path, clip, capfd):
    name = str(tmp_path / "x.264")
    for old in (False, True):
        with WholeFile(name) as file:
            with pytest.raises(OutputError, match=r"x\.264: another writer has it open"):
                ByteSink(name)
            assert encode(clip, name) == 1
            assert "another writer has it open" in capfd.readouterr().err
            file.write(b"one")
        assert open(name, "rb").read() == b"one", old
    with WholeFile(name) as file:
        file.write(b"two")
    with WholeFile("/dev/null"), WholeFile("/dev/null"):
        pass


def test_a_forked_process_keeps_no_file_from_its_next_writer(tmp_path):
    file = WholeFile(str(tmp_path / "x"))
    file.write(b"one")
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.close(tell)
        os.read(told, 1)
        os._exit(0)
    try:
        file.close()
        WholeFile(str(tmp_path / "x")).close()
    finally:
        os.close(tell)
        os.close(told)
        os.waitpid(child, 0)
