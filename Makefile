# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# make help lists the targets. Everything that is built goes to build/, everything that is
# downloaded to $XDG_CACHE_HOME/kretry. Verbose with V=1.

ifneq ($(words $(CURDIR)),1)
$(error kbuild cannot use a path with spaces: move the checkout, now in $(CURDIR))
endif

MAKEFLAGS += --no-print-directory
V ?= 0
export V

BUILD := $(CURDIR)/build
VM := selftests/vm
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kretry

KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
# What make selftest runs; narrow it by KERNELS=6.12 MODES=virtual ONLY='step.*'.
KERNELS ?= 6.1 6.12 7.3
MODES ?= virtual smp
# The kernel of the demo and of the benchmark.
KERNEL ?= 6.12
export KERNELS MODES ONLY

.PHONY: help deps fetch modules install uninstall userspace static unit selftest selfcheck lint manual \
	command fuzz deb package check demo bench clean distclean

help: ## list the targets (this)
	@printf 'usage: make TARGET [V=1]\n\n'
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

deps: ## install the Debian packages that are missing (as root, else by sudo)
	@$(VM)/deps

fetch: deps ## fetch the kernels, their headers and the test harness into the cache
	@$(VM)/fetch $(KERNELS) $(KERNEL) kselftest lint-tools

modules: ## build kretry.ko for one kernel: KDIR=/lib/modules/.../build
	@$(VM)/build-module --kdir "$(KDIR)"
	@echo "  built build/module-host/kretry.ko for $(KDIR)"

install: modules ## install kretry.ko for KDIR, and the uapi header into PREFIX=/usr/local
	@$(VM)/install-module install "$(KDIR)" "$(DESTDIR)" "$(PREFIX)"

uninstall: ## remove what install has installed
	@$(VM)/install-module uninstall "$(KDIR)" "$(DESTDIR)" "$(PREFIX)"

userspace: ## build libkretry and the programs into build/userspace
	@$(MAKE) -s -C userspace O="$(BUILD)/userspace" all

static: deps ## build the static programs for the VM
	@$(MAKE) -s -C userspace O="$(BUILD)/userspace" static

unit: deps ## unit tests of the decision code and the library, on this machine (minutes)
	@$(VM)/check unit

lint: deps ## warnings, sparse, checkpatch, shellcheck, kernel-doc
	@$(VM)/check lint

selftest: deps ## the module's tests in VMs: KERNELS="6.1 6.12 7.3" MODES="virtual smp" ONLY=GLOB
	@$(VM)/check build selftest

selfcheck: deps ## tests of the VM harness itself: crashes, hangs, skips must fail (2 minutes)
	@$(VM)/check selfcheck

manual: deps ## the manuals: mandoc, what they leave out, their examples run
	@$(VM)/check manual

command: userspace ## kretry run on this machine: signals, terminals, real HTTP servers (minutes)
	@$(VM)/check command

fuzz: deps ## the parsers under a fuzzer, for a bounded time, other inputs each time: SECONDS_EACH=20
	@$(VM)/check fuzz

deb: ## make Debian packages in build/deb, after: apt build-dep ./userspace/packaging
	@userspace/packaging/make-source "$(BUILD)/deb"

package: deps ## build the Debian packages; install, upgrade, boot and remove them on Debian 12 and 13
	@$(VM)/check package

check: deps ## everything: all of the above, on three kernels in both modes
	@FUZZ_SEED=1 $(VM)/check lint unit build manual command fuzz package selftest storm selfcheck

demo: static ## the storm: 32 clients and one server in a VM, as a table and a chart (3 minutes)
	@$(VM)/fetch $(KERNEL)
	@$(VM)/run --kernel $(KERNEL) --mode virtual --plan selftests/storm/plan \
		--root "$(BUILD)/userspace/static" --data "$(BUILD)/storm.raw" --timeout 1800
	@userspace/storm/report "$(BUILD)/storm.raw" "$(BUILD)"

bench: deps ## instructions per operation beside what they replace, and two CPUs (four minutes)
	@$(MAKE) -s -C selftests/bench O="$(BUILD)/bench"
	@$(VM)/run --kernel $(KERNEL) --mode virtual --bench --memory 3072 \
		--module-args max_queued=1048576 --plan selftests/bench/plan \
		--root "$(BUILD)/bench/bin" --data "$(BUILD)/bench.raw"
	@$(VM)/run --kernel $(KERNEL) --mode smp --plan selftests/bench/plan.smp \
		--root "$(BUILD)/bench/bin" --data "$(BUILD)/bench-smp.raw"
	@selftests/bench/report "$(BUILD)/bench.raw" "$(BUILD)" --smp "$(BUILD)/bench-smp.raw"

clean: ## remove build/
	rm -rf "$(BUILD)"

distclean: clean ## remove build/ and the cache of downloads
	rm -rf "$(CACHE)"
