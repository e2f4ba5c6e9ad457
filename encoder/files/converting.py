"""The ffmpeg lines that refusals of inputs give."""

import os
import shlex

TO_420 = "-pix_fmt yuv420p"
RGB_TO_420 = ("-vf scale=out_color_matrix=bt709:out_range=tv -pix_fmt yuv420p -color_range tv -colorspace bt709 "
              "-color_primaries bt709 -color_trc bt709")  # fmt: skip
TO_PROGRESSIVE = "-vf bwdif=send_frame"


def converting(name: str, words: str, suffix: str, ending: str = ".mkv") -> str:
    """The line that converts a file without loss but for what `words` say. ending: of the new file, .mkv or .y4m."""
    converted = f"{os.path.splitext(name)[0]}_{suffix}{ending}"
    coder = " -c:v ffv1" if ending == ".mkv" else ""
    return f"convert it: ffmpeg -i {shlex.quote(name)} {words}{coder} {shlex.quote(converted)}"
