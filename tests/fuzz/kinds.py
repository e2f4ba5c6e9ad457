"""Kinds of fuzz cases by name: a module each, which is what a new kind adds, with a line here.

A kind's module has: `material()`, made once and given to all processes; `modules()`, those whose arrays get guard pages;
`warm(material)`, after which all kernels are compiled; `build(material, rng)`, a case, the same for the same seed;
`run(case, numpy)`, which gives a Result, and raises whatever is wrong; `dump(case)`, the case as bytes for a report.
"""

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

KINDS = {
    "decoder": "decoder_cases",  # one broken stream through one decoder
    "encoder": "encoder_cases",  # random options, sizes and contents, decoded by two decoders
    "legal": "legal_cases",  # legal rewrites of streams, decoded by ours and by FFmpeg
    "mp4": "mp4_cases",  # broken MP4 files, and legal ones in other words
    "pages": "page_cases",  # broken streams through report, info and analyse
    "sequences": "sequence_cases",  # several through one, whose caller continues after errors
    "statistics": "statistics_cases",  # hostile numbers in the file of a first pass
    "streams": "stream_cases",  # encodes as users ask for them: threads, passes, buffers and levels checked too
    "selftest": "selftest_cases",  # what a campaign has to find
}


class Result(NamedTuple):
    """What a case came to where nothing is wrong."""

    done: int  # frames, packets: what there was
    refused: str = ""  # the error that names what is wrong with the input


def module_of(kind: str) -> ModuleType:
    """The module of a kind."""
    return import_module(f".{KINDS[kind]}", __package__)
