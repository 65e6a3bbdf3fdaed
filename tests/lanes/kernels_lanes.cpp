// The kernels of a GPU, for the warps of warps.h.
#include "platform_lanes.h"
#if GPURUN_RESIDENT
#include "runtime/kernels/resident_nvptx.cpp"
#else
#include "runtime/kernels/burst_nvptx.cpp"
#endif
