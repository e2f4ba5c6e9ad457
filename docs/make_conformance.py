"""Makes docs/conformance.md: every stream of a manifest, decoded and compared with its MD5, or refused by name.

    H264LITE_CONFORMANCE=folder python docs/make_conformance.py [OUT]

The folder holds manifest.csv (file, profile, entropy, features, width, height, frames, md5, group) and the streams.
Exit code 1 if a stream does not do what its group says.
"""

import csv
import hashlib
import os
import sys
from pathlib import Path

import h264lite

HEAD = """# Conformance streams

Streams of the JVT conformance suite (ITU-T H.264.1), decoded by `decoder/`; made by `docs/make_conformance.py`, which
compares the MD5 of all samples in output order with the suite's. `tests/decoder/test_conformance.py` does the same. Refused
by name: FMO, ASO, data partitioning, SP and SI slices, interlaced coding, other chroma formats than 4:2:0, more than
8 bits, lossless.
Where FFmpeg's frames are others than ours, and why: [differences.md](differences.md).

| stream | profile | coding | tools | size | frames | result |
|---|---|---|---|---|---|---|
"""


def result(data: bytes, row: dict[str, str]) -> tuple[bool, str]:
    """Whether the stream does what its group says, and what it does, in words."""
    decoder, digest, count = h264lite.Decoder(), hashlib.md5(), 0
    try:
        for part in (lambda: decoder.decode(data), decoder.flush):
            for frame in part():
                digest.update(frame.to_bytes())
                count += 1
    except h264lite.Unsupported as error:
        return row["group"] == "refuse", f"refused: {str(error).split(': ')[-1]}"
    except h264lite.BitstreamError as error:
        return False, f"**error**: {error}"
    if row["group"] != "refuse" and (count, digest.hexdigest()) == (int(row["frames"]), row["md5"]):
        return True, "MD5 equal"
    return False, f"**differs**, {count} frames"


def main(out: str = "") -> int:
    """Write the table."""
    folder = Path(os.environ["H264LITE_CONFORMANCE"])
    lines, good = [], True
    with open(folder / "manifest.csv", newline="") as table:
        for row in csv.DictReader(table):
            fine, said = result((folder / row["file"]).read_bytes(), row)
            good &= fine
            lines.append(
                f"| {row['file']} | {row['profile']} | {row['entropy']} | {row['features']} |"
                f" {row['width']}x{row['height']} | {row['frames']} | {said} |\n"
            )
    path = Path(out) if out else Path(__file__).with_name("conformance.md")
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
