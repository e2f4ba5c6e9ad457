// CABAC: the bins of B slices: make_bins, gather_bins and code_bin_by_bin of cabac_bins.cu.
#define B_SLICES
#include "entropy/cabac_bins.cu"
