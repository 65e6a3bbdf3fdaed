// Every point at which the host can fail, in each mode.
#include <gtest/gtest.h>

#include "sweep.h"

namespace gpurun::faults {
namespace {

class AllFaults : public testing::TestWithParam<Case> {};

TEST_P(AllFaults, AreErrors) { sweep(*GetParam().mode, GetParam().kind); }

INSTANTIATE_TEST_SUITE_P(All, AllFaults, testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace gpurun::faults
