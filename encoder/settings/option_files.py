"""Reads the files that options name: whole, up to a limit, devices and pipes too."""

import io
from collections.abc import Iterator

from ...files import small_file
from ...uninterrupted import check_of_file
from ..errors import OptionError


def read_option_file(name: str, option: str, most: int, encoding: str, otherwise: str) -> str:
    """The text of a file of up to `most` bytes; OptionError that names option, file and limit.

    otherwise: what is said of a file that is not in `encoding`.
    """
    try:
        return small_file(name, most, may_wait=True).decode(encoding)
    except OSError as error:
        check_of_file(error)
        raise OptionError(f"{name}: {error.strerror or error}", option) from None
    except UnicodeDecodeError:
        raise OptionError(f"{name}: {otherwise}", option) from None
    except ValueError as error:
        raise OptionError(f"{name}: {error}", option) from None


def lines_of(text: str) -> Iterator[str]:
    """Its lines one after another, for a list of many empty ones is far larger than the text."""
    return (line.rstrip("\n") for line in io.StringIO(text, newline=None))
