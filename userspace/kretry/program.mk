# SPDX-License-Identifier: GPL-2.0-only OR MIT
programs += kretry
kretry_src := $(wildcard kretry/*.c kretry/run/*.c kretry/doctor/*.c)
kretry_libs := -linih -ljansson
