"""The folder of all caches: H264LITE_CACHE, else the user's on this platform; and a temporary one for users without."""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

VARIABLE = "H264LITE_CACHE"
ALONE = "H264LITE_CACHE_ALONE"  # 1: compiled kernels are neither read from other folders nor kept there
ADVICE = f"{VARIABLE} to a folder that you can write and other users cannot"


def cache_root(of_user: bool = False) -> Path | None:
    """The folder for the tuning file and for compiled kernels, which may not exist; None for a user without a home folder.

    `h264lite` in $H264LITE_CACHE, unless `of_user`, else in $XDG_CACHE_HOME, else where the platform keeps caches.
    """
    base = (None if of_user else os.environ.get(VARIABLE)) or os.environ.get("XDG_CACHE_HOME")
    if not base and sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    if not base:
        try:
            base = str(Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache"))
        except RuntimeError:
            return None
        if not os.path.isabs(base):  # an environment without a home folder, too
            return None
    return Path(base).absolute() / "h264lite"


def temporary_root() -> Path | None:
    """A folder among the temporary files that only this user can read and write, kept for later processes; None if
    there is no safe one: then another user may have made it, or may replace it.
    """
    import tempfile  # 1 ms of each start

    number = os.geteuid() if hasattr(os, "geteuid") else None  # on Windows each user has temporary files of his own
    try:
        around = Path(tempfile.gettempdir()).resolve()
        folder = around / ("h264lite" if number is None else f"h264lite-{number}")
        with suppress(FileExistsError):
            folder.mkdir(0o700)
        status, outside = folder.lstat(), around.stat()
    except OSError:
        return None
    if number is None:
        return folder
    replaceable = outside.st_mode & 0o022 and not outside.st_mode & stat.S_ISVTX  # sticky: only owners move files
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == number and not status.st_mode & 0o077
    return folder if is_private and not replaceable and outside.st_uid in (0, number) else None
