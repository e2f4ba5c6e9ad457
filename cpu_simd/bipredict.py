"""Choices of B macroblocks: entries, vectors and SATD of one or both lists, without the neighbours."""


def bipredict(source, references, searches, qp, settings, row0, row1, candidates):
    """To be written."""
    raise NotImplementedError
