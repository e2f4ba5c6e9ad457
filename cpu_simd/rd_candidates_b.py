"""True costs of the choices of B macroblocks, by squared error and bits."""


def rd_candidates_b(source, references, quantiser, settings, tools, row0, row1, candidates, other_costs):
    """To be written."""
    raise NotImplementedError
