"""Write docs/files.md: every file and what it is for, from its first docstring or comment line. See `make docs`."""

import ast
import re
import subprocess
import sys
from itertools import dropwhile, takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Files

Every file and its first sentence: of the docstring of Python files, of the first comment of others. Made by `make docs`
([make_files.py](make_files.py)); a test compares it with the tree. Folders stand in the order of the data, from
the ground up. How they work together: [ARCHITECTURE.md](../ARCHITECTURE.md). `tests/` mirrors these folders.
"""
# Bottom to top; folders that are not named follow their parent.
FOLDERS = (
    "", "jit", "standard", "sound", "mp4", "cpu_simd", "cuda_src", "scheduler", "encoder", "decoder", "analysis", "reader",
    "report", "cluster", "extras", "cli", "samples", "benchmarks", "papers", "docs",
)  # fmt: skip
# Files that cannot hold a comment, or whose first lines have another use.
WORDS = {
    "LICENSE": "MIT",
    "py.typed": "marks the package as typed",
    "report/page/shell.html": "the elements of the page",
    "report/page/style.css": "its style",
    "MANIFEST.in": "what a source archive has beside the packages",
    "pyproject.toml": "the build system; settings of ruff, mypy and pytest",
}
DATA = (".csv", ".png", ".gz", ".json")  # listed by folder alone


def tracked() -> list[str]:
    """Files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in listed.splitlines() if (ROOT / name).exists())


def first_line(name: str) -> str:
    """What the file says it is for, its first sentence; empty if it says nothing."""
    if name in WORDS:
        return WORDS[name]
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        return text.partition("\n")[0].lstrip("# ")
    if name.endswith(".py"):
        paragraph = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].replace("\n", " ")
    else:
        mark = "//" if name.endswith((".c", ".cu", ".cuh", ".js")) else "#"
        lines = [line.strip() for line in text.splitlines() if not line.startswith("#!")]
        comment = takewhile(lambda line: line.startswith(mark), dropwhile(lambda line: not line, lines))
        paragraph = " ".join(takewhile(bool, (line.removeprefix(mark).strip() for line in comment)))
    return re.split(r"(?<=\.)\s+(?=[A-Z])", paragraph, maxsplit=1)[0]


def is_listed(name: str) -> bool:
    """Whether the page has a line for the file."""
    hidden = name.startswith((".git", "tests/")) or name.endswith(DATA)
    return not hidden and (not name.endswith("__init__.py") or name == "__init__.py")


def text(files: list[str]) -> str:
    """The page for these files."""
    folders: dict[str, list[str]] = {}
    for name in filter(is_listed, files):
        folders.setdefault(name.rpartition("/")[0], []).append(name)

    def rank(folder: str) -> tuple[int, str]:
        top = folder.partition("/")[0]
        return FOLDERS.index(top) if top in FOLDERS else len(FOLDERS), folder

    lines = []
    for folder in sorted(folders, key=rank):
        lines += ["", f"## `{folder or '.'}`", ""]
        lines += [f"- [`{name.rpartition('/')[2]}`](../{name}): {first_line(name)}" for name in folders[folder]]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(tracked()), encoding="utf-8")
