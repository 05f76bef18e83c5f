# SPDX-License-Identifier: GPL-2.0-only OR MIT
programs += retry
retry_src := examples/retry.c
