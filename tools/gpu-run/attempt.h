// From the exceptions of gpurun.hpp to what the tool's functions return.
#pragma once

#include <gpurun/gpurun.hpp>

#include <type_traits>

#include "base/result.h"

namespace gpurun::tool {

template <class Body>
auto attempt(Body body) -> Result<decltype(body())> {
    try {
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            return {};
        } else {
            return body();
        }
    } catch (const api::Error& error) {
        return Error{error.what()};
    }
}

}  // namespace gpurun::tool
