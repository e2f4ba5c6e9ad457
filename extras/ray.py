"""`h264lite.ray`: encoding of clips in Ray Data; docs/ray.md."""

from h264lite.cluster.clips import Encode

__all__ = ["Encode"]
