"""The page of one stream, or of two side by side."""

from collections.abc import Iterator
from typing import NamedTuple

from ..encoder.files.video import Source
from ..version import __version__
from .page_file import IN_PAGE, PageFile
from .stream_report import CONSTANTS, StreamReport


class Input(NamedTuple):
    """A stream by its name for people and its bytes in pieces."""

    name: str
    pieces: Iterator[bytes]


class Made(NamedTuple):
    """What was written: bytes of the page and of the folder beside it; frames, error and whether it is cut, by stream."""

    size: int
    outside: int
    folder: str
    frames: list[int]
    errors: list[str]
    cut: list[bool]


def write_report(
    out: str, streams: list[Input], sources: list[Source | None], limit: int | None = None, in_page: int = IN_PAGE
) -> Made:
    """Write the page of one or two streams to the file `out` ("-": standard output); OSError, InputError.

    sources: what each stream was made from, or None. limit: frames of each stream that the page shows.
    A broken stream gives a page of the frames before the error, which says so.
    """
    page = PageFile(out, " and ".join(stream.name for stream in streams), in_page)
    try:
        reports = []
        for key, stream, source in zip("ab", streams, sources):
            report = StreamReport(page, key, stream.name, source, limit)
            report.run(stream.pieces)
            reports.append(report)
        if any(report.frames for report in reports):
            page.finish({"version": __version__, "constants": CONSTANTS, "streams": [report.meta() for report in reports]})
    finally:
        page.close()
    folder = str(page.folder) if page.folder is not None else ""
    return Made(page.size, page.outside, folder, [len(r.frames) for r in reports], [r.error for r in reports],
                [r.cut for r in reports])  # fmt: skip
