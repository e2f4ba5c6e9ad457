"""JVT conformance streams: the supported ones decode to their MD5, the others are refused by the name of the tool."""

import csv
import hashlib
import re
from collections import Counter
from pathlib import Path

import h264lite
import numpy as np
import pytest
from h264lite.benchmarks import conformance

from ..support import sequences

ROOT = Path(__file__).resolve().parent.parent.parent
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


def rows() -> list[dict[str, str]]:
    """Of benchmarks/results/conformance.csv, as benchmarks/conformance.py writes it."""
    with open(ROOT / "benchmarks/results/conformance.csv", encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def test_the_rows_name_every_stream() -> None:
    """Without a failure, which begins with "wrong"."""
    results = {row["stream"]: row["result"].partition(": ")[0] for row in rows()}
    refused = dict.fromkeys(("FM1_FT_E.264", "FM2_SVA_B.264"), "refused")
    assert results == {**dict.fromkeys(NAMES, "MD5 equal"), **refused}


def test_the_page_counts_the_rows() -> None:
    page = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| .* \| \d+ \| ", line)]
    said = {(profile, result): int(count) for profile, count, _, result in cells}
    assert said == Counter((row["profile"], row["result"].partition(": ")[0].removeprefix("MD5 ")) for row in rows())


def test_a_row_says_what_came_of_a_stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Equal samples; others than the manifest's; a refusal that is none; and no stream at all."""
    with h264lite.Encoder(width=16, height=16, qp=30) as encoder:
        packets = [*encoder.encode(np.zeros((16, 16, 3), np.uint8)), *encoder.encode(np.ones((16, 16, 3), np.uint8))]
        stream = b"".join(packet.data for packet in [*packets, *encoder.flush()])
    decoder = h264lite.Decoder()
    frames = [*decoder.decode(stream), *decoder.flush()]
    digest = hashlib.md5(b"".join(frame.to_bytes() for frame in frames)).hexdigest()
    cases = {  # name: frames and MD5 of the manifest, group
        "equal": ("2", digest, "main"), "other": ("2", "0", "main"), "more": ("3", digest, "main"),
        "read": ("2", digest, "refuse"),
    }  # fmt: skip
    lines = ["file,profile,entropy,features,width,height,frames,md5,group"]
    for name, (count, md5, group) in cases.items():
        (tmp_path / name).write_bytes(stream)
        lines.append(f"{name},High,CABAC,,16,16,{count},{md5},{group}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("H264LITE_CONFORMANCE", str(tmp_path))
    assert conformance.main(tmp_path / "out.csv") == 1
    with open(tmp_path / "out.csv", newline="") as table:
        results = [row["result"] for row in csv.DictReader(table)]
    assert results == ["MD5 equal", *["wrong: other samples in 2 frames"] * 3]
