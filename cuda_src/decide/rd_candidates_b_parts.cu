// The same from subme RD_B_PARTS on: true costs move the vectors of divisions that are near the best.
#include "decide/rd_candidates_b.cuh"

#define MOVED , short2 *moved, int max_mv_y
#define VECTORS (Moved{b_mv, moved, max_mv_y})
RD_CANDIDATES_B(rd_candidates_b_parts, RESIDENT_PARTS, false, FlatScaling{}, VECTORS, short2 *, MOVED)
RD_CANDIDATES_B(rd_candidates_b_parts_lists, RESIDENT_PARTS, false, (ListScaling{scaling, 0}), VECTORS, short2 *, MOVED SCALING)
RD_CANDIDATES_B(rd_candidates_b_psy_parts, RESIDENT_PARTS, true, FlatScaling{}, VECTORS, short2 *, MOVED)
RD_CANDIDATES_B(rd_candidates_b_psy_parts_lists, RESIDENT_PARTS, true, (ListScaling{scaling, 0}), VECTORS, short2 *, MOVED SCALING)
