// What a function returns that bad input can defeat: a value, or an Error that a
// person can act on. Not for bugs of our own: those are CHECKs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/ints.h"

namespace gpurun {

struct Error {
    static constexpr u64 nowhere = ~u64{0};

    std::string message;   // one sentence, lower case, without the place
    u64 offset = nowhere;  // byte offset in the input the message speaks of

    // "0x1f: i32.add expects i32, got f32", or the message alone.
    std::string to_string() const;
};

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const { return state_.index() == 0; }
    bool ok() const { return state_.index() == 0; }

    T& value() & { return std::get<0>(state_); }
    const T& value() const& { return std::get<0>(state_); }
    T&& value() && { return std::get<0>(std::move(state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    Error& error() & { return std::get<1>(state_); }
    const Error& error() const& { return std::get<1>(state_); }
    Error&& error() && { return std::get<1>(std::move(state_)); }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    explicit operator bool() const { return !error_; }
    bool ok() const { return !error_; }
    void value() const {}

    Error& error() & { return *error_; }
    const Error& error() const& { return *error_; }
    Error&& error() && { return *std::move(error_); }

private:
    std::optional<Error> error_;
};

// Unwraps a Result, or returns its Error from the enclosing function.
#define TRY(expression)                                        \
    ({                                                         \
        auto try_result = (expression);                        \
        if (!try_result) return std::move(try_result).error(); \
        std::move(try_result).value();                         \
    })

}  // namespace gpurun
