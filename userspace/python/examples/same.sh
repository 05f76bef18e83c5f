# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
kretry run --attempts 5 --delay 1s --max-delay 8s --jitter none -- "$@"
