# SPDX-License-Identifier: Apache-2.0
#
# Short names for the usual commands; CMake does the work. Every target installs what is missing,
# builds what it needs in build/, and prints the commands it runs.

BUILD := build
# Each commit fuzzes from its own seed, so that what a test says about a commit stays said.
FUZZ_SEED := $(or $(shell git rev-list --count HEAD 2>/dev/null),1)
# How long `make fuzz` runs. (SECONDS itself is a variable of the shell.)
SECONDS_ ?= 600
COMMA := ,
# Several files at a time: from nothing that takes half as long. With EACH=1 every file is compiled
# alone: after a change of one file that is faster, and a missing include is seen.
CMAKE_FLAGS ?=
EACH ?=
TOGETHER := $(if $(EACH),OFF,ON)
# The cache takes files that use precompiled headers only if it is told that their macros do not matter.
LAUNCHER := $(if $(shell command -v ccache 2>/dev/null),"-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_SLOPPINESS=pch_defines$(COMMA)time_macros;ccache")

# On a terminal Ninja keeps its progress on one line; in a log it would fill pages.
NINJA_FLAGS := $(if $(MAKE_TERMOUT),,-- --quiet)

# Echoes a command as the reader would type it, then runs it.
run_command = @echo "\$$ $(1)"; $(1)

# Builds the targets that are given.
build_targets = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Quick $(LAUNCHER) \
  -DNAUTILUS_UNITY=$(TOGETHER) $(CMAKE_FLAGS) >/dev/null && \
  cmake --build $(BUILD) --target $(1) $(NINJA_FLAGS) # Warnings and errors go to stderr.

.PHONY: help run test fuzz clean format build tool docs
.DEFAULT_GOAL := help

help:
	@echo "make run     build the tool, check and evaluate examples/attention.naut, and run its kernel in the emulator"
	@echo "make test    build everything, then run all tests and 10 seconds of fuzzing"
	@echo "make fuzz    build, then fuzz for SECONDS_=$(SECONDS_) seconds"
	@echo "make build   build everything; with EACH=1 each file alone"
	@echo "make docs    build the site of the documents in $(BUILD)/site (needs the Python package mkdocs-material)"
	@echo "make format  format all sources with clang-format 14"
	@echo "make clean   remove the build folders"

tool:
	@scripts/setup.sh
	@echo "Building $(BUILD)/nautilus, the compiler and its command line, without tests:" \
	  "from nothing some minutes on two cores."
	@$(call build_targets,nautilus)

build:
	@scripts/setup.sh --with-tests
	@echo "Building the compiler, its libraries and all tests in $(BUILD)/."
	@$(call build_targets,all)

run: tool
	$(call run_command,$(BUILD)/nautilus check examples/attention.naut)
	$(call run_command,$(BUILD)/nautilus eval examples/attention.naut)
	$(call run_command,$(BUILD)/nautilus run examples/attention.naut --emulate --check)

test: build
	$(call run_command,scripts/run_unit_tests.sh $(BUILD)/nautilus_unit_tests --gtest_brief=1)
	$(call run_command,$(BUILD)/nautilus test)
	$(call run_command,$(BUILD)/nautilus_fuzz --seconds 10 --seed $(FUZZ_SEED))

fuzz: build
	$(call run_command,$(BUILD)/nautilus_fuzz --seconds $(SECONDS_))

docs: tool
	$(call run_command,scripts/check_docs.sh $(BUILD)/site $(BUILD)/nautilus)

format:
	@scripts/check_style.sh --format

clean:
	rm -rf build build-asan
