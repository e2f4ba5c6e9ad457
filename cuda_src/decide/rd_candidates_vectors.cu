// The same from subme RD_DIVISIONS on: true costs move the vectors of divisions that are near the best.
#include "decide/rd_candidates.cuh"

RD_CANDIDATES(rd_candidates_vectors, false, true, FlatScaling{}, NO_MORE)
RD_CANDIDATES(rd_candidates_vectors_lists, false, true, (ListScaling{scaling, 0}), SCALING)
RD_CANDIDATES(rd_candidates_psy_vectors, true, true, FlatScaling{}, NO_MORE)
RD_CANDIDATES(rd_candidates_psy_vectors_lists, true, true, (ListScaling{scaling, 0}), SCALING)
