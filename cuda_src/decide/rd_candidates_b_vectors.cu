// The same from subme RD_B_DIVISIONS on: true costs move the vectors of divisions that are near the best.
#include "decide/rd_candidates_b.cuh"

#define MOVED , short2 *moved, int max_mv_y
#define VECTORS (Moved{b_mv, moved, max_mv_y})
RD_CANDIDATES_B(rd_candidates_b_vectors, RESIDENT_BLOCKS, false, FlatScaling{}, VECTORS, short2 *, MOVED)
RD_CANDIDATES_B(rd_candidates_b_vectors_lists, RESIDENT_BLOCKS, false, (ListScaling{scaling, 0}), VECTORS, short2 *, MOVED SCALING)
RD_CANDIDATES_B(rd_candidates_b_psy_vectors, RESIDENT_BLOCKS, true, FlatScaling{}, VECTORS, short2 *, MOVED)
RD_CANDIDATES_B(rd_candidates_b_psy_vectors_lists, RESIDENT_BLOCKS, true, (ListScaling{scaling, 0}), VECTORS, short2 *, MOVED SCALING)
