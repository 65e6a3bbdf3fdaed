// The kernels of a GPU, for the warps of warps.h.
#include "platform_lanes.h"
#include "runtime/kernels_nvptx.cpp"
