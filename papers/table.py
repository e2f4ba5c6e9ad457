"""A table with published and measured columns, as text, Markdown and CSV."""

import csv
import io
import math
from dataclasses import dataclass, field
from typing import Any

from .notes import NOTES

PRINT = "print: "  # what the head of a published column begins with


@dataclass
class Table:
    """columns of published figures begin with `print: `; cells are texts, numbers, None (missing) or About."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[Any]]
    bars: list[str] = field(default_factory=list)  # the columns to plot

    @property
    def note(self) -> str:
        """What stands below it."""
        return NOTES.get(self.name, "")

    def column(self, head: str) -> list[Any]:
        """One column's cells."""
        k = self.columns.index(head)
        return [row[k] for row in self.rows]

    def text(self) -> str:
        """For a terminal."""
        lines = [self.columns, *([cell(c) for c in row] for row in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.columns))]
        laid = ["  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]) for line in lines]
        return "\n".join([f"{self.name}  {self.title}", *laid, *([self.note] if self.note else [])])

    def markdown(self) -> str:
        """Published figures in italics."""
        printed = [head.startswith(PRINT) for head in self.columns]
        heads = [f"*{head[len(PRINT) :]}*" if p else head for head, p in zip(self.columns, printed)]
        lines = [f"### {self.title}", "", "| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
        for row in self.rows:
            cells = [cell(c) for c in row]
            cells = [f"*{c}*" if p and c != "-" else c for c, p in zip(cells, printed)]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join([*lines, "", *([self.note, ""] if self.note else [])])


@dataclass
class About:
    """A number that was scaled up from a sample."""

    value: float


def cell(value: Any) -> str:
    """A number in few digits."""
    if value is None:
        return "-"
    if isinstance(value, About):
        return "~" + cell(value.value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or math.isinf(value):
        return str(value)
    if value == 0 or abs(value) < 5e-4:
        return f"{value:.2g}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def number(value: Any) -> float | None:
    """For a plot."""
    value = value.value if isinstance(value, About) else value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def to_csv(tables: list[Table]) -> str:
    """All tables, one value a line; ~ marks what was scaled from a sample."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "row", "column", "source", "value"])
    for table in tables:
        for row in table.rows:
            for head, value in zip(table.columns[1:], row[1:]):
                source = "published" if head.startswith(PRINT) else "measured"
                if value is not None:
                    writer.writerow([table.name, row[0], head.removeprefix(PRINT), source, cell(value)])
    return out.getvalue()
