#!/bin/sh
# The runtime's PTX for every generation of GPUs.
exec python3 "$GPURUN_SOURCE/tests/ptx/assemble_test.py" --all
