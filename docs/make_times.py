"""Put the table of benchmarks/results/clip_times.csv into README.md: python docs/make_times.py README.md"""

import re
import sys
from pathlib import Path

from h264lite.benchmarks.clip_times import RESULTS, read_rows, table

MARKED = re.compile(r"(?<=-->\n)(?:(?!-->).)*?(?=<!-- clip_times: end)", re.DOTALL)


def text(readme: str) -> str:
    """The page with the table between its marks."""
    return MARKED.sub(lambda _: table(read_rows(RESULTS)) + "\n", readme, count=1)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(text(page.read_text(encoding="utf-8")), encoding="utf-8")
