"""Decodes the streams of the conformance suite: a row each in benchmarks/results/conformance.csv.

    H264LITE_CONFORMANCE=folder python -m h264lite.benchmarks.conformance [OUT]

The folder has manifest.csv (file, profile, entropy, features, width, height, frames, md5, group) and the streams. A row
says what came of its stream: "MD5 equal", or "refused: " and the tool that the decoder lacks. Exit code 1 if a stream does
not do what its group says; its row then begins with "wrong: ".
"""

import csv
import hashlib
import os
import sys
from pathlib import Path

import h264lite

RESULTS = Path(__file__).resolve().parent / "results" / "conformance.csv"
FIELDS = ("stream", "profile", "coding", "tools", "width", "height", "frames", "result")
WRONG = "wrong: "


def result(data: bytes, row: dict[str, str]) -> str:
    """What came of a stream. row: of the manifest."""
    decoder, digest, count = h264lite.Decoder(), hashlib.md5(), 0
    refused = row["group"] == "refuse"
    try:
        for call in (lambda: decoder.decode(data), decoder.flush):
            for frame in call():
                digest.update(frame.to_bytes())
                count += 1
    except h264lite.Unsupported as error:
        return f"{'' if refused else WRONG}refused: {str(error).split(': ')[-1]}"
    except h264lite.BitstreamError as error:
        return f"{WRONG}{error}"
    if not refused and (count, digest.hexdigest()) == (int(row["frames"]), row["md5"]):
        return "MD5 equal"
    return f"{WRONG}other samples in {count} frames"


def main(out: str | Path = RESULTS) -> int:
    """Write the rows."""
    folder = Path(os.environ["H264LITE_CONFORMANCE"])
    with open(folder / "manifest.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    results = [result((folder / row["file"]).read_bytes(), row) for row in rows]
    columns = ("file", "profile", "entropy", "features", "width", "height", "frames")
    with open(out, "w", encoding="utf-8", newline="") as table:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows([*(row[name] for name in columns), said] for row, said in zip(rows, results, strict=True))
    return int(any(said.startswith(WRONG) for said in results))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
