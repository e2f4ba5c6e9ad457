"""Where compiled kernels are kept: the first folder that can be written and that others cannot change."""

import os
import tempfile
from pathlib import Path

import pytest
from h264lite.jit import cache_checks, cache_root
from h264lite.jit import cache_folder as cache_folders

from .test_cache_checks import told  # noqa: F401


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Sources, and a way to say which folders cannot be written, or read either."""
    closed = {}
    access = os.access

    def look(path, mode):
        kept = (mode & bits for place, bits in closed.items() if Path(path).is_relative_to(place))
        return access(path, mode) and not any(kept)

    monkeypatch.setattr(cache_folders.os, "access", look)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path / "given"))
    sources = tmp_path / "sources"
    sources.mkdir()
    return sources, closed


def test_where_kernels_are_kept(folders, tmp_path, monkeypatch):
    sources, closed = folders
    find = cache_folders.find_cache_folder
    given = find(sources)
    assert given.folder.is_relative_to(tmp_path / "given" / "h264lite" / "kernels") and given.writable and not given.refused
    assert given.folder.stat().st_mode & 0o022 == 0
    given.folder.chmod(0o777)
    numbas = find(sources)
    assert numbas.folder.parent == tmp_path / "numba" and numbas.refused == (f"{given.folder} may be written by other users",)
    monkeypatch.delenv("H264LITE_CACHE")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    users = find(sources)
    assert users.folder.is_relative_to(tmp_path / "user" / "h264lite" / "kernels") and users.writable
    (sources / "__pycache__").mkdir()
    assert find(sources).readable == (users.folder, sources / "__pycache__")
    closed[users.folder] = os.W_OK
    beside_sources = find(sources)
    assert beside_sources.folder == sources / "__pycache__" and beside_sources.writable
    assert beside_sources.readable == (users.folder, beside_sources.folder)
    closed[beside_sources.folder] = os.W_OK
    closed[tmp_path / "user"] = os.W_OK
    temporary = find(sources)
    assert temporary.folder.is_relative_to(tmp_path / "tmp") and temporary.writable
    assert temporary.readable == (users.folder, beside_sources.folder, temporary.folder)
    closed[tmp_path / "tmp"] = os.W_OK
    assert (find(sources).folder, find(sources).writable) == (users.folder, False)
    for place in closed:
        closed[place] = os.R_OK
    assert find(sources) == cache_folders.CacheFolder(None, False, ())


def test_folders_of_the_package_have_the_same_name_in_every_place(monkeypatch, tmp_path):
    """So that a cache serves another installation; sources outside of the package are told apart by their place."""
    monkeypatch.setenv("H264LITE_CACHE", str(tmp_path))
    root = Path(cache_folders.__file__).parents[1]
    assert cache_folders.find_cache_folder(root / "scheduler" / "threads").folder.name == "scheduler.threads"
    names = {cache_folders.find_cache_folder(tmp_path / name / "same").folder.name for name in "ab"}
    assert len(names) == 2


def test_folders_that_cannot_be(folders, tmp_path, monkeypatch):
    sources, _ = folders
    (tmp_path / "given").write_bytes(b"a file")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    place = cache_folders.find_cache_folder(sources)
    assert place.folder.is_relative_to(tmp_path / "user") and place.writable
    assert cache_folders.second_best(place) == (
        f"H264LITE_CACHE={tmp_path / 'given'} cannot be written; kernels are kept in {place.folder}")
    monkeypatch.delenv("H264LITE_CACHE")
    assert not cache_folders.second_best(cache_folders.find_cache_folder(sources))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user without a home
    (sources / "__pycache__").write_bytes(b"a file")
    place = cache_folders.find_cache_folder(sources)
    assert place.folder.is_relative_to(tmp_path / "tmp") and not Path("~").exists()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert cache_folders.second_best(place) == (
        f"compiled kernels are kept in {place.folder}, since no other folder can be written: set {cache_root.ADVICE}")


def test_refused_folders_are_told(folders, tmp_path, told, monkeypatch):  # noqa: F811
    sources, _ = folders
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    first = cache_folders.find_cache_folder(sources).folder
    first.chmod(0o775 if os.geteuid() == 0 else 0o757)
    second = cache_folders.cache_folder(sources).folder
    assert second.is_relative_to(tmp_path / "user")
    assert told == [f"{first} may be written by other users: no compiled kernels are loaded from there; they are kept in "
                    f"{second}"]  # fmt: skip


# ---- the temporary folder
def test_a_temporary_folder_is_the_users_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = cache_root.temporary_root()
    assert folder == tmp_path / f"h264lite-{os.geteuid()}" and folder.stat().st_mode & 0o777 == 0o700
    assert cache_root.temporary_root() == folder  # a later process
    assert not cache_checks.distrust(folder.stat())


@pytest.mark.parametrize("how", ["open", "group", "file", "link", "of another", "replaceable", "place of another"])
def test_unsafe_temporary_folders(tmp_path, monkeypatch, how):
    """What another user may have made, or may exchange, is not used."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"h264lite-{os.geteuid()}"
    if how == "file":
        folder.write_text("")
    elif how == "link":
        (tmp_path / "elsewhere").mkdir(0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif how in ("open", "group"):
        folder.mkdir()
        folder.chmod(0o777 if how == "open" else 0o750)
    elif how == "replaceable":
        tmp_path.chmod(0o777)
    else:
        place, kept = (folder if how == "of another" else tmp_path), Path.lstat if how == "of another" else Path.stat

        def of_another(path, **kws):
            status = kept(path, **kws)
            return os.stat_result((*status[:4], 4321, *status[5:])) if path == place else status

        monkeypatch.setattr(Path, "lstat" if how == "of another" else "stat", of_another)
    assert cache_root.temporary_root() is None


def test_a_sticky_place_is_safe(tmp_path, monkeypatch):
    """As /tmp is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o1777)
    assert cache_root.temporary_root() is not None
