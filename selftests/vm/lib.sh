# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# Shared by the scripts beside it: paths, messages, timing. To be sourced.

set -euo pipefail
export LC_ALL=C

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOP=$(cd "$VM_DIR/../.." && pwd)
BUILD=${KRETRY_BUILD:-$TOP/build}
CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/kretry
PROGRAM=$(basename "$0")
# The kernels every check runs on; fetch has the table of what can be fetched.
KERNELS=${KERNELS:-6.1 6.12 7.3}
export VM_DIR TOP BUILD CACHE PROGRAM KERNELS

if [ -t 1 ]; then
	BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
else
	BOLD='' RED='' GREEN='' PLAIN=''
fi
export BOLD RED GREEN PLAIN

verbose() {
	[ "${V:-0}" != 0 ]
}

say() {
	printf '%s\n' "$*"
}

warn() {
	printf '%s: %s\n' "$PROGRAM" "$*" >&2
}

die() {
	warn "$*"
	exit 1
}

usage_error() {
	warn "$*"
	exit 2
}

# Milliseconds since boot, so that a clock step cannot spoil a duration.
now_ms() {
	local up
	read -r up _ </proc/uptime
	printf '%s\n' "$((10#${up/./} * 10))"
}

# seconds_since START_MS: "3.4 s"
seconds_since() {
	local ms=$(($(now_ms) - $1))
	printf '%d.%d s\n' $((ms / 1000)) $((ms % 1000 / 100))
}

# timed LABEL COMMAND...: announces the command and says how long it took.
timed() {
	local label=$1 start
	shift
	start=$(now_ms)
	say "  $label ..."
	"$@"
	say "  $label: done in $(seconds_since "$start")"
}

# fail_reason LOG: the most useful line for a person from an apt or dpkg log.
fail_reason() {
	local log=$1
	if grep -qiE 'no space left|enough free space' "$log"; then
		say "the disk is full: free some space and run it again"
	elif grep -qiE 'could not resolve|temporary failure|could not connect|unable to connect|network is unreachable|connection (timed out|failed|refused)' "$log"; then
		say "no network: connect this machine to its Debian mirror and run it again"
	elif grep -qiE 'could not get lock|unable to acquire' "$log"; then
		say "another package manager is running: wait for it and run it again"
	else
		grep -E '^(E|Err|W|dpkg|tar|xz):?' "$log" | head -n 1 | grep . || say "the package is not there"
	fi
}
