// True costs of the choices of each macroblock in a B frame.
#include "decide/rd_candidates_b.cuh"

#if __CUDA_ARCH__ >= 1000
constexpr int PSY_BLOCKS = 4;  // of a multiprocessor at once: with five, registers would spill here
#else
constexpr int PSY_BLOCKS = 5;
#endif
#define READ const short2 *__restrict__
RD_CANDIDATES_B(rd_candidates_b, 5, false, FlatScaling{}, NotMoved{}, READ, NO_MORE)
RD_CANDIDATES_B(rd_candidates_b_lists, 4, false, (ListScaling{scaling, 0}), NotMoved{}, READ, SCALING)
RD_CANDIDATES_B(rd_candidates_b_psy, PSY_BLOCKS, true, FlatScaling{}, NotMoved{}, READ, NO_MORE)
RD_CANDIDATES_B(rd_candidates_b_psy_lists, 4, true, (ListScaling{scaling, 0}), NotMoved{}, READ, SCALING)
