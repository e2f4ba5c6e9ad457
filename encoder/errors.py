"""The errors for users: each has a message of one line and the exit code of the command line."""


class Error(Exception):
    """The base of all errors that h264lite raises; `exit_code` is that of the command line."""

    exit_code = 1


class OptionError(Error, ValueError):
    """An option that is unknown, not built, out of range, or contradicts another one.

    `option` is its name with dashes where the message begins with it: the command line puts -- before it.
    """

    exit_code = 2

    def __init__(self, text: str, option: str = ""):
        super().__init__(f"{option} {text}" if option else text)
        self.option = option


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
