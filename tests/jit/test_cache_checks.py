"""Files that are kept: loaded only whole and of no other user."""

import errno
import os
import random
import threading
import warnings

import pytest
from h264lite.jit import cache_checks

ME, OTHER = 1234, 4321


def status(mode, user=ME, group=ME):
    return os.stat_result((mode, 0, 0, 1, user, group, 0, 0, 0, 0))


@pytest.fixture
def told():
    """What is told, instead of warnings."""
    messages = []
    with cache_checks.messages_to(messages.append):
        yield messages


def break_it(data, how, rng):
    """Bytes that a crash or a full disk may leave, or worse."""
    if how == "empty":
        return b""
    if how == "cut":
        return data[: rng.randrange(len(data))]
    if how == "zeros":
        return bytes(len(data))
    if how == "garbage":
        return rng.randbytes(rng.randrange(1, 2 * len(data)))
    if how == "longer":
        return data + rng.randbytes(rng.randrange(1, 99))
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


HOW = ("empty", "cut", "zeros", "garbage", "longer", "bit")


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "a"
    for data in (b"", b"abc", bytes(100_000)):
        cache_checks.write(path, data)
        assert cache_checks.read(path) == data and cache_checks.problem_of(path) == ""
    assert os.listdir(tmp_path) == ["a"]
    assert cache_checks.read(tmp_path / "none") is None and cache_checks.problem_of(tmp_path / "none") == ""


@pytest.mark.parametrize("how", HOW)
def test_damaged_files_are_not_read(tmp_path, told, how):
    path, rng = tmp_path / "a", random.Random(how)
    cache_checks.write(path, rng.randbytes(200))
    whole = path.read_bytes()
    for _ in range(300):
        path.write_bytes(break_it(whole, how, rng))
        assert cache_checks.read(path) is None and cache_checks.problem_of(path) == cache_checks.DAMAGED
    assert not told  # it is replaced


def test_others_cannot_write_to_what_is_written(tmp_path):
    before = os.umask(0)
    try:
        cache_checks.write(tmp_path / "a", b"abc")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    cache_checks.write(tmp_path / "a", b"before")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        cache_checks.write(tmp_path / "a", b"behind")
    assert os.listdir(tmp_path) == ["a"] and cache_checks.read(tmp_path / "a") == b"before"


@pytest.mark.parametrize(("mode", "user", "trusted"), [
    (0o644, ME, True), (0o600, ME, True), (0o644, 0, True), (0o755, 77, True),  # 77: owner of the sources
    (0o644, OTHER, False), (0o600, 65534, False), (0o646, ME, False), (0o664, ME, False), (0o777, 0, False),
])  # fmt: skip
@pytest.mark.parametrize("me", [ME, 0])
def test_whom_files_are_taken_from(monkeypatch, mode, user, trusted, me):
    """Root takes no more than others do, as in a container with folders of other users."""
    monkeypatch.setattr(os, "geteuid", lambda: me)
    monkeypatch.setattr(cache_checks.os, "stat", lambda path: status(0o644, 77))
    if user == ME and me == 0:
        trusted = False
    assert (cache_checks.distrust(status(mode, user)) == "") == trusted


def test_a_group_of_one_may_write(monkeypatch):
    """As where each user has a group, and files are made with umask 002."""
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: pwd.struct_passwd(("ann", "", number, ME, "", "", "")))
    for name, members, alone in (("ann", [], True), ("ann", ["ann"], True), ("ann", ["bob"], False), ("staff", [], False)):
        group = grp.struct_group((name, "", ME, members))
        monkeypatch.setattr(grp, "getgrgid", lambda number, group=group: group)
        assert (cache_checks.distrust(status(0o664)) == "") == alone
        assert cache_checks.distrust(status(0o666))

    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr(grp, "getgrgid", unknown)
    assert cache_checks.distrust(status(0o664))


def test_files_of_others_are_not_read_and_told_once(tmp_path, told, monkeypatch):
    for name in "ab":
        cache_checks.write(tmp_path / name, b"abc")
        (tmp_path / name).chmod(0o666)
        assert cache_checks.read(tmp_path / name) is None
    assert told == [f"{tmp_path / 'a'} may be written by other users: not loaded"]
    cache_checks.write(tmp_path / "a", b"abc")  # replaced
    assert cache_checks.read(tmp_path / "a") == b"abc"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_fifo_is_not_waited_for(tmp_path, told):
    """It is replaced as a damaged file is."""
    path = tmp_path / "a"
    os.mkfifo(path)
    reader = threading.Thread(target=cache_checks.read, args=(path,), daemon=True)
    reader.start()
    reader.join(10)
    assert not reader.is_alive() and told == [f"{path} is not a regular file: not loaded"]
    assert cache_checks.problem_of(path) == "is not a regular file"
    cache_checks.write(path, b"abc")
    assert cache_checks.read(path) == b"abc"


def test_without_a_listener_it_is_a_warning():
    # as if nothing had been told
    with cache_checks.messages_to(lambda text: None), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        cache_checks._listener = None
        cache_checks.warn_once("kind", "text")
        cache_checks.warn_once("kind", "more")
    assert [(str(entry.message), entry.category) for entry in warned] == [("text", RuntimeWarning)]
