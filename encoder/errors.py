"""The errors for users: each has a message of one line and the exit code of the command line."""

import re
from collections.abc import Callable
from typing import TypeVar

from ..files import error_text
from ..uninterrupted import check_of_file

Result = TypeVar("Result")


_SPECIAL = {"lenient": "lenient=True", "pass": "pass_"}


def in_python(text: str) -> str:
    """A message with the options in it as keyword arguments: "--b-pyramid 2: see --ref" -> "b_pyramid 2: see ref"."""
    return re.sub(r"(?<!\S)(\()?--([a-z0-9]+(?:-[a-z0-9]+)*)", _keyword, text)


def _keyword(match: re.Match[str]) -> str:
    name = match[2].replace("-", "_")
    return (match[1] or "") + _SPECIAL.get(name, name)


class Error(Exception):
    """The base of all errors that h264lite raises; `exit_code` is that of the command line."""

    exit_code = 1


class OptionError(Error, ValueError):
    """An option that is unknown, not built, out of range, or contradicts another one.

    `option` is its name with dashes where the message begins with it. Messages are written in words of the command line,
    which `command_text` has; str() has those of Python.
    """

    exit_code = 2

    def __init__(self, text: str, option: str = ""):
        super().__init__(f"--{option} {text}" if option else text)
        self.option = option

    def __str__(self) -> str:
        return in_python(self.command_text)

    @property
    def command_text(self) -> str:
        """The message for the command line."""
        return str(self.args[0])


class InputError(Error, ValueError):
    """Input that cannot be read: missing, cut off, or in a format that is not supported."""


class RefusedFrame(InputError):
    """A frame on a GPU whose samples were found wrong after it had entered: no frame can follow."""


class OutputError(Error):
    """Output that cannot be written."""


class DeviceError(Error):
    """The requested device is missing."""

    exit_code = 3


class DeviceLost(Error):
    """The requested device failed during the encode; frames finished before can still be fetched."""


def named_errors(
    call: Callable[[], Result], error_class: type[Error], name_of: Callable[[OSError | ValueError], str]
) -> Result:
    """The result of a call. OSError and ValueError become `error_class`, with a name before the text; an Error stays."""
    try:
        return call()
    except Error:
        raise
    except (OSError, ValueError) as error:
        check_of_file(error)
        text = error_text(error) if isinstance(error, OSError) else str(error)
        raise error_class(f"{name_of(error)}: {text}") from None
