# The front door: what there is to do here, each in one command. CMakePresets.json has the builds.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60

# $(call build,PRESET[,TARGET...])
build = cmake --preset $(1) --log-level=WARNING >/dev/null && \
        cmake --build --preset $(1) -j $(JOBS) $(if $(2),--target $(2))
# $(call beside_guests,COMMAND): makes the guests meanwhile, which wait for downloads and often have work for one core.
beside_guests = @$(MAKE) --no-print-directory guests & guests=$$!; ($(1)); built=$$?; \
                wait $$guests && exit $$built

.PHONY: gpu-run guests demo check test test-long bench bench-suite fuzz release package wheel format tidy clean help
.DEFAULT_GOAL := gpu-run

gpu-run:    ## build the command: build/gpu-run
	@scripts/install-deps build
	$(call build,dev,gpu-run)

guests:     ## modules of the programs in examples and tests: build/guests
	@scripts/install-deps --try guests
	@scripts/build-guests build/guests

demo: gpu-run  ## show what it does, with a program of Rust or C
	@scripts/install-deps --try guests
	@scripts/build-guests --no-tools build/guests unique_chars longest
	@examples/demo

check:      ## the quick tests, in a build of their own that is made again in seconds
	@scripts/install-deps build test
	$(call build,check)
	@scripts/test --quick build/check

test:       ## the tests, in the normal build and under the address and UB sanitizers
	@scripts/install-deps build test
	@scripts/install-deps --try guests
	$(call beside_guests,$(call build,dev))
	$(call build,asan)
	@scripts/test build build/asan

test-long:  ## those, the long ones, and all under the thread sanitizer too
	@scripts/install-deps build test
	@scripts/install-deps --try guests
	$(call beside_guests,$(call build,dev,all long_tests))
	$(call build,asan,all long_tests)
	$(call build,tsan,all long_tests)
	@scripts/test --long build build/asan build/tsan

bench:      ## speed of the parts, and of the interpreter beside wabt's
	@scripts/install-deps build bench
	$(call build,dev)
	taskset -c 0 build/bench/gpurun-bench --benchmark_out=bench/results/parts-cpu.json
	bench/compare-wabt

bench-suite:  ## jobs of ordinary C for all engines, to run with bench/suite/run: build/bench-suite
	@scripts/install-deps build c
	@bench/suite/build build/bench-suite

fuzz:       ## every fuzz target for FUZZ_SECONDS (60)
	@scripts/install-deps build fuzz
	$(call build,fuzz)
	@scripts/fuzz $(FUZZ_SECONDS)

release:    ## one stripped binary for other Linux machines: build/release/gpu-run
	@scripts/install-deps build
	@scripts/install-deps --try release
	$(call build,release)

package:    ## a .deb and a tarball for other Linux machines: build/release/packages
	@scripts/install-deps build
	@scripts/install-deps --try release
	$(call build,release,gpu-run gpurun_shared gpurun_static manual)
	cpack --config build/release/CPackConfig.cmake

wheel:      ## the Python package, with the library in it: build/release/packages
	@scripts/install-deps build
	@scripts/install-deps --try release
	$(call build,release,gpurun_shared)
	python3 python/build_backend.py build/release/packages

format:     ## clang-format every source file
	@scripts/install-deps format
	git ls-files '*.h' '*.cpp' | xargs clang-format-22 -i

tidy:       ## clang-tidy src and tools
	@scripts/install-deps build format
	$(call build,dev)
	run-clang-tidy-22 -quiet -p build -j $(JOBS) '/(src|tools)/'

clean:      ## remove build/
	rm -rf build

help:       ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
