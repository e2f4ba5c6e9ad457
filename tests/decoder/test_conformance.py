"""JVT conformance streams: the supported ones decode to their MD5, the others are refused by the name of the tool."""

import csv
import hashlib
from pathlib import Path

import h264lite
import numpy as np
import pytest

from ..support import sequences

SLOW = ("LS_SVA_D.264", "CI1_FT_B.264", "HCBP2_HHI_A.264", "CANL1_TOSHIBA_G.264")
NAMES = """AUD_MW_E.264 BA1_Sony_D.jsv BAMQ2_JVC_C.264 BANM_MW_D.264 BASQP1_Sony_C.jsv CI1_FT_B.264 HCBP2_HHI_A.264
LS_SVA_D.264 MR1_MW_A.264 MR4_TANDBERG_C.264 MR5_TANDBERG_C.264 NLMQ1_JVC_C.264 NRF_MW_E.264 SVA_BA2_D.264 SVA_Base_B.264
SVA_NL1_B.264 BA3_SVA_C.264 CABA1_SVA_B.264 CABA3_SVA_B.264 CANL1_TOSHIBA_G.264 CANL3_SVA_B.264
CVPCMNL1_SVA_C_5f.264 NL3_SVA_E.264 Freh2_B.264 freh3.264 freh8.264 FRExt1_Panasonic.avc
FRExt3_Panasonic.avc HCAFR1_HHI.264 HCAFR3_HHI.264""".split()


def manifest_row(name: str) -> dict[str, str]:
    """The stream's row of manifest.csv."""
    with open(sequences.conformance_folder() / "manifest.csv", newline="") as table:
        return next(row for row in csv.DictReader(table) if row["file"] == name)


def decode(name: str) -> tuple[int, str]:
    """Number of frames, and MD5 of all samples in output order."""
    data = (sequences.conformance_folder() / name).read_bytes()
    decoder, digest, count = h264lite.Decoder(), hashlib.md5(), 0
    for part in (lambda: decoder.decode(data), decoder.flush):
        for frame in part():
            count += 1
            for plane in (frame.y, frame.u, frame.v):
                digest.update(np.ascontiguousarray(plane).tobytes())
    return count, digest.hexdigest()


STREAMS = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in NAMES]


@pytest.mark.parametrize("name", STREAMS)
def test_supported(name: str) -> None:
    row = manifest_row(name)
    assert decode(name) == (int(row["frames"]), row["md5"])


@pytest.mark.parametrize("name", ["FM1_FT_E.264", "FM2_SVA_B.264"])
def test_refused_by_name(name: str) -> None:
    assert manifest_row(name)["group"] == "refuse"
    with pytest.raises(h264lite.Unsupported, match="slice groups"):
        decode(name)


def test_all_streams_are_named() -> None:
    with open(sequences.conformance_folder() / "manifest.csv", newline="") as table:
        assert {row["file"] for row in csv.DictReader(table)} == {*NAMES, "FM1_FT_E.264", "FM2_SVA_B.264"}


def test_the_table_in_docs_names_every_stream() -> None:
    """docs/conformance.md, as docs/make_conformance.py wrote it, is of this manifest, and without a failure."""
    table = (Path(__file__).resolve().parent.parent.parent / "docs" / "conformance.md").read_text(encoding="utf-8")
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]  # without the titles
    rows = {row.split(" | ")[0].lstrip("| "): row.rstrip("| ").split(" | ")[-1] for row in lines}
    assert {name: said.startswith("refused: ") for name, said in rows.items()} == {
        **dict.fromkeys(NAMES, False), "FM1_FT_E.264": True, "FM2_SVA_B.264": True
    }  # fmt: skip
    assert "**" not in table
