"""Pages of streams for the tests of report/: streams of several kinds, pages of them, and what a page holds."""

import base64
import functools
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from h264lite.report.packing import unpack
from h264lite.report.report import Input, write_report
from h264lite.standard.bits import NAL_SEI, nal_unit
from h264lite.standard.syntax import SEI_USER_DATA_UNREGISTERED, write_sei

from . import round_trip, sequences, x264_streams

KINDS = ("baseline", "high", "x264", "slices")
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2><!-- "  # as a name, as user data
WIDTH, HEIGHT = 100, 76  # 7 x 5 macroblocks, cropped on two sides


@functools.cache
def clip():
    """14 frames of WIDTH x HEIGHT."""
    return round_trip.noise_clip(WIDTH, HEIGHT, 14, 5)


@functools.cache
def stream(kind):
    """A stream of h264lite (baseline, high), of x264, or of the conformance streams with several slices a frame."""
    if kind == "baseline":
        return round_trip.encode(clip(), WIDTH, HEIGHT, profile="baseline", qp=30, keyint=8)[0]
    if kind == "high":
        return round_trip.encode(clip(), WIDTH, HEIGHT, profile="high", qp=27, bframes=3, b_adapt=0, scenecut=0, keyint=10)[0]
    if kind == "x264":
        return x264_streams.encode(x264_streams.clip(), keyint=12)
    return (sequences.conformance_folder() / "SVA_Base_B.264").read_bytes()


def hostile_stream():
    """The Baseline stream with HOSTILE as user data."""
    payload = write_sei([(SEI_USER_DATA_UNREGISTERED, bytes(16) + HOSTILE.encode())])
    return nal_unit(NAL_SEI, 0, payload) + stream("baseline")


def make(folder, *streams, name="page.html", names=(), sources=(), **more):
    """(path of the page, what `write_report` says) of streams as bytes."""
    path = Path(folder) / name
    names = (*names, *(f"{k}.264" for k in range(2)))
    sources = (*sources, None, None)
    inputs = [Input(said, iter((data,)), source) for said, data, source in zip(names, streams, sources)]
    return path, write_report(str(path), inputs, **more)


@dataclass
class Page:
    """elements: (tag, attributes) in order; texts: of script elements by id, "" for the page's own script; meta: its JSON."""

    elements: list
    texts: dict
    meta: dict

    def arrays(self, key, n):
        """The sections of frame n of a stream."""
        return unpack(base64.b64decode(self.texts[f"{key}f{n}"]))


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.elements, self.texts, self._id = [], {}, None

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "script":
            self._id = dict(attributes).get("id", "")
            self.texts[self._id] = ""

    def handle_endtag(self, tag):
        if tag == "script":
            self._id = None

    def handle_data(self, data):
        if self._id is not None:
            self.texts[self._id] += data


def read(path):
    """The Page in a file."""
    reader = _Reader()
    reader.feed(Path(path).read_text(encoding="utf-8"))
    return Page(reader.elements, reader.texts, json.loads(reader.texts["meta"]))


def vectors(sections):
    """int16[n, 2, 16, 2] of packed motion, by a plain loop; 0 where a list is not used."""
    n = len(sections["type"])
    out = np.zeros((n, 2, 16, 2), np.int16)
    in_section = iter(sections["vector"].reshape(-1, 2))
    for mb in range(n):
        for direction in range(2):
            detail = sections["detail"][mb] >> 2 * direction & 3
            if detail == 1:
                out[mb, direction] = next(in_section)
            elif detail == 2:
                for quadrant in range(4):
                    first = quadrant // 2 * 8 + quadrant % 2 * 2
                    out[mb, direction, [first, first + 1, first + 4, first + 5]] = next(in_section)
            elif detail == 3:
                for block in range(16):
                    out[mb, direction, block] = next(in_section)
    assert next(in_section, None) is None
    return out
