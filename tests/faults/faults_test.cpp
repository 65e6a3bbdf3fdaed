// Some of the points at which the host can fail, in each mode. faults_long_test.cpp tries all.
#include <gtest/gtest.h>

#include "sweep.h"

namespace gpurun::faults {
namespace {

class Faults : public testing::TestWithParam<Case> {};

TEST_P(Faults, AreErrors) { sweep(*GetParam().mode, GetParam().kind, 16); }

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace gpurun::faults
