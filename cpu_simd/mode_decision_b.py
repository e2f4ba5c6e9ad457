"""Mode decision of B frames: type, direct prediction, partitions, lists and vectors, in decoding order."""


def mode_decision_b(
    source, references, candidates, colocated_still, other_costs, slice_first_mb, qp, settings, progress, row0, row1, motion
):
    """To be written."""
    raise NotImplementedError
