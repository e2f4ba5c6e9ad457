"""Motion of a decoded frame, kept for B frames: co-located blocks of direct prediction (8.4.1.2)."""


def keep_motion(motion, row0, row1, kept):
    """To be written."""
    raise NotImplementedError
