# SPDX-License-Identifier: GPL-2.0-only OR MIT
programs += storm
storm_src := $(wildcard storm/*.c)
storm_libs := -lm
