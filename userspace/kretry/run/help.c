// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry run --help */

#include "run.h"

const char help_run[] =
	"COMMAND [ARGUMENT...]\n"
	"run a command until it succeeds, with retries\n"
	"\n"
	"Without options: up to 5 attempts, with exponential delays from 1s to 1m and full jitter. What\n"
	"the exit status means decides whether there is another attempt. Durations have a unit: 250ms,\n"
	"1.5s, 2m.\n"
	"\n"
	"  kretry run curl -sf https://api.example.com/\n"
	"  kretry run --attempts 10 --timeout 30s --retry-on 1,75 -- ./sync --all\n"
	"  kretry run --policy payments --key https://pay.example.com:443 ./pay\n";

const struct option_line run_lines[] = {
	{ 0, "Which policy:" },
	{ OPT_POLICY, "the host-wide one, or a section of /etc/kretry.d/*.conf" },
	{ OPT_CONFIG, "another directory than /etc/kretry.d" },
	{ OPT_KEY, "which budget and breaker: a number or scheme://host:port (0)" },
	{ OPT_PRESET, "start from another system's parameters: kretry policy presets" },
	{ OPT_ATTEMPTS, "attempts in all, or unlimited (5)" },
	{ OPT_DELAY, "the first delay (1s)" },
	{ OPT_MAX_DELAY, "no delay is above it (1m)" },
	{ OPT_FACTOR, "each delay is so many times the one before (2)" },
	{ OPT_JITTER, "none, full, equal, proportional or additive (full)" },
	{ OPT_TOTAL, "no attempt starts later than this after the first (no limit)" },
	{ OPT_MAX_HINT, "give up if the server asks for a longer wait (5m)" },
	{ OPT_SET, "any setting of a policy file; may be repeated" },
	{ OPT_DEVICE, "another node than /dev/kretry" },
	{ 0, "What is a failure:" },
	{ OPT_TIMEOUT, "of each attempt: SIGTERM to all of it, then SIGKILL" },
	{ OPT_GRACE, "between the two, and after a signal to kretry (5s)" },
	{ OPT_RETRY_ON, "retry these only: 1,4-7,SIGSEGV" },
	{ OPT_NO_RETRY_ON, "do not retry these" },
	{ OPT_CODES, "what an exit status means: exit, or curl (for curl)" },
	{ OPT_RETRY_AFTER_FROM, "where the command leaves the server's answer, or fd:N" },
	{ OPT_ONCE_ONLY, "do not retry what may have been done, like a timeout" },
	{ 0, "Input and output:" },
	{ OPT_STDIN, "replay the input for each attempt, null, or inherit (replay)" },
	{ OPT_OUTPUT, "pass it on, or hold it back: of the last, or success (pass)" },
	{ OPT_QUIET, "say nothing but errors" },
	{ OPT_VERBOSE, "also say who decides, and hints" },
	{ OPT_JSON, "say it as JSON, an object a line" },
	{ 0, "Other:" },
	{ OPT_NESTED, "retry although an outer kretry run retries already" },
	{ 0, "Exit status: the command's at its last attempt, 128 and n if signal n killed it; or\n"
	     "  2    the command line is wrong\n"
	     "  122  not run: the breaker is open, or the next slot is too far away\n"
	     "  123  given up, as the server asks for a longer wait than allowed\n"
	     "  124  the last attempt timed out\n"
	     "  125  kretry itself failed, as when there is no such policy\n"
	     "  126  the command cannot be executed\n"
	     "  127  it is not there\n"
	     "  129, 130, 131, 143  interrupted by SIGHUP, SIGINT, SIGQUIT, SIGTERM" },
	{ 0, "In the environment of the command are KRETRY_ATTEMPT, KRETRY_ATTEMPTS,\n"
	     "KRETRY_REASON (of the last failure) and KRETRY_IDEMPOTENCY_KEY (the same at each\n"
	     "attempt)." },
	{ 0, NULL }
};
