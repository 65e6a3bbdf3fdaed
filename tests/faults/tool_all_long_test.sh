#!/bin/sh
# Every point of tool_test.py.
exec "$(dirname "$0")/tool_test.py" --all
