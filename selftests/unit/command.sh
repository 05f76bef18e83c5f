# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
#
# What the tests of the command share. To be sourced; then each function is a test, by its name, and
# run_tests is called.
set -euo pipefail

KRETRY=${KRETRY:-../../build/userspace/kretry}
# shellcheck disable=SC2034 # used by those who source this
NO_DEVICE=/nonexistent/kretry
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# try WORDS…: run the command with them; its status, stdout and stderr are then in these
status=0
try()
{
	status=0
	"$KRETRY" "$@" > "$dir/out" 2> "$dir/err" || status=$?
}

# wrong TEXT: why the test fails; always false
wrong()
{
	printf '# %s (exit status %s)\n' "$1" "$status"
	sed 's/^/#   /' "$dir/out" "$dir/err" | head -n 20
	return 1
}

# expect STATUS [TEXT]: what try came to; with an error one line on stderr that has TEXT, else none
expect()
{
	[ "$status" -eq "$1" ] || wrong "expected status $1" || return 1
	if [ $# -eq 1 ]; then
		[ ! -s "$dir/err" ] || wrong 'something on stderr'
		return
	fi
	[ "$(wc -l < "$dir/err")" -eq 1 ] || wrong 'not one line on stderr' || return 1
	grep -qF -- "$2" "$dir/err" || wrong "no \"$2\" in it"
}

# says STATUS TEXT: what try came to, without an error, and TEXT is on stdout
says()
{
	expect "$1" || return 1
	grep -q -- "$2" "$dir/out" || wrong "no \"$2\" in it"
}

# value KEY: of the JSON object on stdout
value()
{
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' \
		"$dir/out" "$1"
}

run_tests()
{
	local tests name number=0 failed=0 result

	tests=$*
	[ $# -gt 0 ] || tests=$(declare -F | awk '{ print $3 }' |
		grep -vxE 'try|wrong|expect|says|value|complains|names|noted|on_terminal|run_tests')
	printf '1..%d\n' "$(wc -w <<< "$tests")"
	for name in $tests; do
		number=$((number + 1))
		# Not in a condition: there a failure within would not end the function.
		set +e
		(set -e; "$name")
		result=$?
		set -e
		if [ "$result" -eq 0 ]; then
			printf 'ok %d - %s\n' "$number" "$name"
		else
			printf 'not ok %d - %s\n' "$number" "$name"
			failed=1
		fi
	done
	exit "$failed"
}
