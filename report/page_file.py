"""The page as a file: shell, data in the order in which it is made, script; data beyond a limit lie in a folder beside it."""

import base64
import hashlib
import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import Replacement, WholeFile, replace_file

_FOLDER = Path(__file__).parent / "page"
STYLES = ("style.css",)
SCRIPTS = (
    "data.js", "colours.js", "pictures.js", "vectors.js", "deblocking.js", "overlays.js", "view.js", "timeline.js",
    "charts.js", "panels.js", "totals.js", "tools.js", "legend.js", "main.js",
)  # fmt: skip
IN_PAGE = 1 << 27  # bytes of data, as text, that the page itself holds


def _joined(names: Sequence[str]) -> str:
    return "".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def as_json(values: Any) -> str:
    """JSON that can stand in a script element: no text in it can end the element or begin another."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class PageFile:
    """Writes the page in pieces: `add` for each piece of data, then `finish`; OSError.

    in_page: bytes of data after which further pieces become files in the folder NAME_files, loaded on demand. Standard
    output has no folder: there all data lie in the page. An earlier page stays until this one is finished.
    """

    def __init__(self, name: str, title: str, in_page: int = IN_PAGE) -> None:
        self._replacement = Replacement(name)
        try:
            self._file = WholeFile(self._replacement.temporary, said="" if name == "-" else name)
        except BaseException:
            self._replacement.discard()
            raise
        self._left = in_page
        self._folder = None if name == "-" else Path(f"{os.path.splitext(name)[0]}_files")
        self._title = title
        self._begun = False
        self._written: list[Path] = []  # files of the folder, of a page that is not finished
        self.size = 0  # bytes of the page
        self.outside = 0  # bytes of the files in the folder
        self._script = f'"use strict";\n(() => {{\n{_joined(SCRIPTS)}}})();\n'
        self._style = _joined(STYLES)

    @property
    def folder(self) -> Path | None:
        """Where data beyond the limit lie; None if there are none."""
        return self._folder if self.outside else None

    def add(self, key: str, data: bytes) -> None:
        """A piece of data under a name of letters and digits."""
        text = base64.b64encode(data)
        if self._folder is None or len(text) <= self._left:
            self._left -= len(text)
            self._write(f'<script type="text/plain" id="{key}">'.encode(), text, b"</script>\n")
            return
        self._left = 0  # what follows lies in the folder too, in order
        if not self.outside:
            self._folder.mkdir(exist_ok=True)
        line = b'reportData("%b","%b");\n' % (key.encode(), text)
        path = self._folder / f"{key}.js"
        replace_file(str(path), line)
        self._written.append(path)
        self.outside += len(line)

    def finish(self, meta: dict[str, Any]) -> None:
        """Write what the page says about its data, and its script."""
        meta = {**meta, "folder": self._folder.name if self._folder is not None and self.outside else ""}
        self._write(
            f'<script type="application/json" id="meta">{as_json(meta)}</script>\n'.encode(),
            f"<script>{self._script}</script>\n</body>\n</html>\n".encode(),
        )
        self._file.close()
        self._replacement.finish()
        self._written = []

    def close(self) -> None:
        """Close the file; a second call does nothing. A page that was not finished is removed, with its folder's files."""
        try:
            self._file.close()
        finally:
            self._replacement.discard()
            for path in self._written:
                path.unlink(missing_ok=True)
            self._written = []

    def _write(self, *chunks: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._write(self._head().encode())
        self._file.write(*chunks)
        self.size += sum(map(len, chunks))

    def _head(self) -> str:
        """The document up to its data. The policy allows no network, and no script but that of this package."""
        policy = (
            f"default-src 'none'; script-src {_hash(self._script)} 'strict-dynamic'; style-src {_hash(self._style)}; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        )
        shell = (_FOLDER / "shell.html").read_text(encoding="utf-8")
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f'<meta name="viewport" content="width=device-width">\n<meta name="referrer" content="no-referrer">\n'
            f"<title>{html.escape(self._title)}</title>\n<style>{self._style}</style>\n</head>\n<body>\n{shell}\n"
        )
