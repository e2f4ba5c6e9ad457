"""Which device encodes, and why: decided once, before anything is allocated."""

from importlib.util import find_spec

from .errors import DeviceError


def choose_device(asked: str) -> tuple[str, str]:
    """(device, reason) for `auto` or a device asked for by name; DeviceError if that one is not there.

    Nothing of CUDA is imported: a context is taken by the first stage that runs on it.
    """
    if asked == "cpu":
        return "cpu", "asked for"
    if asked == "auto":
        return "cpu", "this version has no CUDA path"
    install = "" if find_spec("pycuda") else ", and PyCUDA is not installed (pip install 'h264lite[cuda]')"
    raise DeviceError(f"device {asked}: this version has no CUDA path{install}; use --device cpu or auto")
