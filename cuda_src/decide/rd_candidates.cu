// True costs of the divisions of each macroblock in a P frame.
#include "decide/rd_candidates.cuh"

RD_CANDIDATES(rd_candidates, false, false, FlatScaling{}, NO_MORE)
RD_CANDIDATES(rd_candidates_lists, false, false, (ListScaling{scaling, 0}), SCALING)
RD_CANDIDATES(rd_candidates_psy, true, false, FlatScaling{}, NO_MORE)
RD_CANDIDATES(rd_candidates_psy_lists, true, false, (ListScaling{scaling, 0}), SCALING)
