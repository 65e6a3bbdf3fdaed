#!/usr/bin/env python3
"""A machine on the CPU under a small load of every kind, by resident-load.

    load_test.py RESIDENT_LOAD GUESTS [FLAG...]

Every check of resident-load is a test. The last line counts them: N passed, N failed, N skipped.
"""
import json
import pathlib
import subprocess
import sys

PARTS = ["date", "commit", "command", "device", "driver", "latency", "idle", "load", "driver_calls", "launches", "lanes",
         "heartbeat_latest_ns", "stop_seconds", "ping_spinning", "checks"]


def main():
    program, guests, *flags = sys.argv[1:]
    if not (pathlib.Path(guests) / "load.wasm").exists():
        print(f"skipped: no load.wasm in {guests}: make guests")
        return 77
    done = subprocess.run([program, "--device", "cpu", "--guests", guests, *flags], capture_output=True, text=True,
                          check=False)
    sys.stderr.write(done.stderr)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        print(f"exit code {done.returncode}, and no JSON: {done.stdout[:200]!r}")
        return 1
    missing = [part for part in PARTS if part not in found]
    if missing:
        print(f"the JSON has no {' '.join(missing)}")
        return 1
    failed = [row for row in found["checks"] if not row["ok"]]
    for row in found["checks"]:
        print(f"{'ok' if row['ok'] else 'FAILED':7} {row['name']}: {row['text']}")
    if (done.returncode != 0) != bool(failed):
        print(f"exit code {done.returncode} with {len(failed)} failures")
        return 1
    print(f"{len(found['checks']) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
