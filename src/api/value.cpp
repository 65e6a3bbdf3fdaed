// Values between the interface and the engine.
#include "engine/value.h"

#include <cstring>

#include "api/handles.h"
#include "base/format.h"
#include "translate/translate.h"

namespace gpurun::api {

using engine::Value;
using wasm::ValType;

static_assert(sizeof(gpurun_value) == 24 && sizeof(gpurun_value::of) == sizeof(V128));

gpurun_value to_c(const Value& value) {
    gpurun_value made = {};
    if (value.type.is_ref()) {
        made.type = GPURUN_REFERENCE;
        made.of.i32 = value.to_string() != "null";
        return made;
    }
    switch (value.type.kind()) {
        case ValType::i32: made.type = GPURUN_I32; break;
        case ValType::i64: made.type = GPURUN_I64; break;
        case ValType::f32: made.type = GPURUN_F32; break;
        case ValType::f64: made.type = GPURUN_F64; break;
        case ValType::v128: made.type = GPURUN_V128; break;
        default: return made;
    }
    std::memcpy(&made.of, &value.bits, sizeof made.of);
    return made;
}

Result<ValType> type_from_c(gpurun_type type) {
    switch (type) {
        case GPURUN_I32: return ValType(ValType::i32);
        case GPURUN_I64: return ValType(ValType::i64);
        case GPURUN_F32: return ValType(ValType::f32);
        case GPURUN_F64: return ValType(ValType::f64);
        case GPURUN_V128: return ValType(ValType::v128);
        default: return Error{format("%u is no type of a number or vector", unsigned(type))};
    }
}

Result<Value> from_c(const gpurun_value& value) {
    Value made{TRY(type_from_c(gpurun_type(value.type)))};
    std::memcpy(&made.bits, &value.of, translate::words_of(made.type) * sizeof(u32));
    return made;
}

}  // namespace gpurun::api

size_t gpurun_value_text(gpurun_value value, char* buffer, size_t capacity) {
    std::string text;
    gpurun_error_delete(gpurun::api::guarded([&]() -> gpurun::Result<void> {
        if (value.type == GPURUN_REFERENCE)
            text = value.of.i32 ? "ref" : "null";
        else
            text = TRY(gpurun::api::from_c(value)).to_string();
        return {};
    }));
    if (buffer && capacity > 0) {
        buffer[text.copy(buffer, capacity - 1)] = '\0';
    }
    return text.size();
}
