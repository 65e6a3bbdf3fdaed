// Errors as handles, and the version.
#include "api/handles.h"

namespace gpurun::api {
namespace {

// For when there is not even memory for an error.
gpurun_error no_memory{"out of memory"};

}  // namespace

gpurun_error* make_error(const std::string& message) noexcept {
    try {
        return new gpurun_error{message};
    } catch (const std::bad_alloc&) {
        return &no_memory;
    }
}

}  // namespace gpurun::api

#define TEXT_OF(number) #number
#define VERSION(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char* gpurun_version(void) {
    return VERSION(GPURUN_VERSION_MAJOR, GPURUN_VERSION_MINOR, GPURUN_VERSION_PATCH);
}

const char* gpurun_error_message(const gpurun_error* error) {
    return error ? error->message.c_str() : "";
}

void gpurun_error_delete(gpurun_error* error) {
    if (error != &gpurun::api::no_memory) delete error;
}
