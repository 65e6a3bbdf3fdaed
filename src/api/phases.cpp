// What the library spent its time on.
#include "base/phases.h"

#include <gpurun/gpurun.h>

using gpurun::Phase;

size_t gpurun_phase_count(void) { return size_t(Phase::count); }
const char* gpurun_phase_name(size_t index) {
    return index < gpurun_phase_count() ? gpurun::name_of(Phase(index)) : nullptr;
}
double gpurun_phase_seconds(size_t index) {
    return index < gpurun_phase_count() ? gpurun::seconds_in(Phase(index)) : 0;
}
