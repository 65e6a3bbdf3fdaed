// What a kernel asks of the hardware, where tests/suite/fake_driver.cpp launches it.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern unsigned fake_block, fake_blocks, fake_lane, fake_lanes;

#ifdef __cplusplus
}
#endif

#define __nvvm_read_ptx_sreg_ctaid_x() fake_block
#define __nvvm_read_ptx_sreg_nctaid_x() fake_blocks
#define __nvvm_read_ptx_sreg_tid_x() fake_lane
#define __nvvm_read_ptx_sreg_ntid_x() fake_lanes
