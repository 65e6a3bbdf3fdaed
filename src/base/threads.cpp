// Exceptions by their kind, and the start of threads.
#include "base/threads.h"

#include <new>
#include <system_error>

#include "base/format.h"

namespace gpurun {
namespace {

// Short enough to lie in the string itself.
Error out_of_memory() noexcept { return Error{"out of memory"}; }

}  // namespace

Error caught_error() noexcept {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    } catch (const std::exception& exception) {
        try {
            return Error{exception.what()};
        } catch (...) {
            return out_of_memory();
        }
    } catch (...) {
        return Error{"unknown error"};
    }
}

Result<std::thread> start_thread(const char* purpose, std::function<void()> function) noexcept {
    return guarded([&]() -> Result<std::thread> {
        try {
            return std::thread(std::move(function));
        } catch (const std::system_error& error) {
            return Error{format("cannot start a thread %s: %s", purpose, error.what())};
        }
    });
}

}  // namespace gpurun
