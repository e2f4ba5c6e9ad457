"""The page of one stream, or of two side by side."""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ..encoder.files.video import Source
from ..version import __version__
from .page_file import IN_PAGE, PageFile
from .stream_report import CONSTANTS, Options, StreamReport


class Input(NamedTuple):
    """A stream: its name, its bytes in pieces, what it was made from, and its frame rate if a container says it."""

    name: str
    pieces: Iterator[bytes]
    source: Source | None = None
    rate: Fraction | None = None


class WrittenReport(NamedTuple):
    """What was written: bytes of the page and of the folder beside it; frames, error and whether it is cut, by stream."""

    size: int
    outside: int
    folder: str
    frames: list[int]
    errors: list[str]
    cut: list[bool]


def write_report(out: str, streams: list[Input], options: Options | None = None, in_page: int = IN_PAGE) -> WrittenReport:
    """Write the page of one or two streams to the file `out` ("-": standard output); OSError, InputError.

    A broken stream gives a page of the frames before the error, which says so. Without frames nothing is written.
    """
    page = PageFile(out, " and ".join(stream.name for stream in streams), in_page)
    try:
        reports = []
        for key, stream in zip("ab", streams):
            report = StreamReport(page, key, stream.name, stream.source, stream.rate, options or Options())
            report.run(stream.pieces)
            reports.append(report)
        if all(report.frames for report in reports):
            page.finish({"version": __version__, "constants": CONSTANTS, "streams": [report.meta() for report in reports]})
    finally:
        page.close()
    folder = str(page.folder) if page.folder is not None else ""
    return WrittenReport(
        page.size,
        page.outside,
        folder,
        [len(r.frames) for r in reports],
        [r.error for r in reports],
        [r.cut for r in reports],
    )
