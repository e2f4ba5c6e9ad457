"""Images of Pillow: turned as their EXIF orientation says, with or without transparency."""

from typing import Any

_ORIENTATION = 0x0112  # tag of EXIF
_TURNS = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE",
    8: "ROTATE_90",
}  # fmt: skip


def upright(image: Any) -> Any:
    """An image as it is shown; ImageOps.exif_transpose fails where it cannot write the other tags again."""
    image.load()  # TIFF is turned by it
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION))
    except Exception:  # EXIF that cannot be read
        turn = None
    if turn is None:
        return image
    from PIL.Image import Transpose

    return image.transpose(Transpose[turn])


def has_transparency(image: Any) -> bool:
    """Whether an image has alpha, or a colour or palette entries that are transparent."""
    return image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info
