// Names as Rust's current compilers write them ("v0"), made readable.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpurun::engine {

// "core::ptr::drop_in_place::<u8>" for "_RINvNtC…". Nothing where it is not such a name, or one
// that would become very long.
std::optional<std::string> rust_v0_name(std::string_view name);

}  // namespace gpurun::engine
