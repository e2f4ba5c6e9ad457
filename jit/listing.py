"""The versions of kernels that some work calls, listed without Numba: calls do nothing, versions can be compiled later.

For processes of their own: kernels of a process that has listed once are never run there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import numba_free
from .numba_free import Loaded, Versions, describe, describe_default

_ROOT = Path(__file__).resolve().parent.parent
_RESULTS = {"run_calls": -1, "run_steps": -1}  # of kernels that tell by another number than 0 that all is done
_ADDRESS = 1  # any but 0: nothing is called there
_listed: dict[str, "Version"] = {}  # by Version.name


@dataclass(frozen=True)
class Version:
    """A kernel for arguments of some types. source: its file, below the package's folder."""

    source: str
    file: str
    versions: Versions
    described: tuple[Any, ...]
    arguments: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The version, the same in each process."""
        return f"{self.source}:{self.file}"

    def is_kept(self) -> bool:
        """Whether it is in a cache."""
        return numba_free._saved(self.versions._function, self.described) is not None

    def compile(self) -> None:
        """Compile it, and keep it for other processes."""
        self.versions._compile(self.described, self.arguments)


class _ListedVersions(Versions):
    """Versions that are listed when they are asked for. Arguments are kept, since a version is compiled for them."""

    def _choose(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> Loaded:
        described = (*map(describe, arguments), *map(describe_default, self._left_out(arguments)))
        source, name = numba_free._name(self._function)
        path = numba_free._file(Path(), name, numba_free._host(), described, source)
        version = Version(source.resolve().relative_to(_ROOT).as_posix(), path.name, self, described, arguments)
        _listed.setdefault(version.name, version)
        result = _RESULTS.get(self._function.__name__, 0)
        self._by_key[key] = (lambda *_: result), _ADDRESS
        return self._by_key[key]


def list_versions(work: Callable[[], object]) -> list[Version]:
    """The versions that `work` calls, in order. Kernels must not have been called before in this process."""
    vars(numba_free)["Versions"] = _ListedVersions
    work()
    return list(_listed.values())


def are_kept(names: list[str]) -> bool | None:
    """Whether files for all versions of these names exist; None: they are of other sources than these."""
    folders: dict[Path, set[str]] = {}
    for name in names:
        source, _, file = name.partition(":")
        path = _ROOT / source
        if not path.is_file() or file.split(".")[-2] != numba_free.short_stamp(path):
            return None
        if path.parent not in folders:
            folders[path.parent] = numba_free.files_of(path.parent)
        if file not in folders[path.parent]:
            return False
    return True
