// The same from subme RD_B_PARTS on: true costs move the vectors of divisions that are near the best.
#include "decide/rd_candidates_b.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define RESIDENT 2  // the assembler spills registers at 3 there
#else
#define RESIDENT 3
#endif
#define MOVED , short2 *moved, int max_mv_y
#define VECTORS (Moved{b_mv, moved, max_mv_y})
RD_CANDIDATES_B(rd_candidates_b_parts, RESIDENT, false, FlatScaling{}, VECTORS, short2 *, MOVED)
RD_CANDIDATES_B(rd_candidates_b_parts_lists, RESIDENT, false, (ListScaling{scaling, 0}), VECTORS, short2 *, MOVED SCALING)
RD_CANDIDATES_B(rd_candidates_b_psy_parts, RESIDENT, true, FlatScaling{}, VECTORS, short2 *, MOVED)
RD_CANDIDATES_B(rd_candidates_b_psy_parts_lists, RESIDENT, true, (ListScaling{scaling, 0}), VECTORS, short2 *, MOVED SCALING)
