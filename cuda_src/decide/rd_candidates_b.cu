// True costs of the choices of each macroblock in a B frame.
#include "decide/rd_candidates_b.cuh"

#define READ const short2 *__restrict__
RD_CANDIDATES_B(rd_candidates_b, 4, false, FlatScaling{}, NotMoved{}, READ, NO_MORE)
RD_CANDIDATES_B(rd_candidates_b_lists, 4, false, (ListScaling{scaling, 0}), NotMoved{}, READ, SCALING)
RD_CANDIDATES_B(rd_candidates_b_psy, 4, true, FlatScaling{}, NotMoved{}, READ, NO_MORE)
RD_CANDIDATES_B(rd_candidates_b_psy_lists, 4, true, (ListScaling{scaling, 0}), NotMoved{}, READ, SCALING)
