// Some of the points at which the host can fail, in each mode. faults_long_test.cpp tries all.
#include <gtest/gtest.h>

#include "sweep.h"

namespace gpurun::faults {
namespace {

class Faults : public testing::TestWithParam<Case> {};

// Of each kind, in each mode; the long test has all.
#if __has_feature(address_sanitizer)
constexpr u64 points = 2;  // each takes several times as long
#else
constexpr u64 points = 4;
#endif
TEST_P(Faults, AreErrors) { sweep(*GetParam().mode, GetParam().kind, points); }

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace gpurun::faults
