// The same from subme RD_PARTS on: true costs move the vectors of divisions that are near the best.
#include "decide/rd_candidates.cuh"

RD_CANDIDATES(rd_candidates_parts, false, true, FlatScaling{}, NO_MORE)
RD_CANDIDATES(rd_candidates_parts_lists, false, true, (ListScaling{scaling, 0}), SCALING)
RD_CANDIDATES(rd_candidates_psy_parts, true, true, FlatScaling{}, NO_MORE)
RD_CANDIDATES(rd_candidates_psy_parts_lists, true, true, (ListScaling{scaling, 0}), SCALING)
