// Slice data of B slices by CAVLC: code_macroblocks of entropy.cu.
#define B_SLICES
#include "entropy/entropy.cu"
