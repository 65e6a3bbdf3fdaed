// What the library says of itself: notes, and what it spent its time on.
#include "base/phases.h"

#include <gpurun/gpurun.h>

#include "base/notes.h"
#include "engine/beside.h"

using gpurun::Phase;

size_t gpurun_phase_count(void) { return size_t(Phase::count); }
const char* gpurun_phase_name(size_t index) {
    return index < gpurun_phase_count() ? gpurun::name_of(Phase(index)) : nullptr;
}
double gpurun_phase_seconds(size_t index) {
    return index < gpurun_phase_count() ? gpurun::seconds_in(Phase(index)) : 0;
}

void gpurun_set_notes(gpurun_line line, void* data) {
    if (!line) return gpurun::hear_notes({});
    gpurun::hear_notes([line, data](const std::string& text) { line(data, text.c_str()); });
}

void gpurun_set_compile_progress(gpurun_progress progress, void* data) {
    if (!progress) return gpurun::hear_compiled({});
    gpurun::hear_compiled(
        [progress, data](uint64_t done, uint64_t all) { progress(data, done, all); });
}

bool gpurun_is_compiling(void) { return gpurun::engine::is_working_beside(); }
