"""Figures of matplotlib as the contents of a file, the same for the same numbers; whether matplotlib is there."""

import importlib.util
import io
from typing import Any

from ...encoder.errors import OptionError

FORMATS = ("png", "svg", "pdf")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # of Okabe and Ito: for all readers
OF_TYPES = {"I": COLOURS[1], "P": COLOURS[0], "B": COLOURS[2]}


def check_matplotlib(option: str, otherwise: str = "") -> None:
    """OptionError for an option (empty: a command) if matplotlib is missing. otherwise: what serves without it."""
    if importlib.util.find_spec("matplotlib") is None:
        said = f", or {otherwise}" if otherwise else ""
        raise OptionError(f"needs matplotlib, which is not installed: pip install 'h264lite[plot]'{said}", option)


def new_figure(width: float, height: float) -> Any:
    """A Figure, in inches, with a canvas of its own: no state of pyplot, no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def contents(figure: Any, file_format: str = "png", dpi: int = 110) -> bytes:
    """The figure as a file. file_format: one of FORMATS, without the date."""
    from matplotlib import rc_context

    file = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(file_format)
    with rc_context({"svg.hashsalt": "h264lite", "svg.fonttype": "none"}):
        figure.savefig(file, format=file_format, dpi=dpi, metadata=undated)
    return file.getvalue()
