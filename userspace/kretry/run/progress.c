// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What it says of the attempts, on stderr, for people. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

#define YELLOW	"\033[33m"
#define RED	"\033[31m"

/* To a length that people read: 1.53s, 812ms, 90s, 1h. Up, as it will not be sooner. */
const char *shown_duration(uint64_t ns, char *text)
{
	uint64_t step = NS_PER_S;

	if (ns < NS_PER_MS)
		step = 1000;
	else if (ns < NS_PER_S)
		step = NS_PER_MS;
	else if (ns < 60 * NS_PER_S)
		step = 10 * NS_PER_MS;
	else if (ns > 3600 * NS_PER_S)
		step = 60 * NS_PER_S;
	if (ns <= KRETRY_NS_MAX - step)
		ns = (ns + step - 1) / step * step;
	return format_duration(ns, text);
}

static void line(struct run *r, const char *colour, const char *text)
{
	countdown_erase(r);
	if (*colour && may_colour(STDERR_FILENO))
		fprintf(stderr, "%skretry: %s\033[0m\n", colour, text);
	else
		fprintf(stderr, "kretry: %s\n", text);
}

/* With --verbose. */
void note(struct run *r, const char *format, ...)
{
	char text[1024];
	va_list list;

	if (!r->set.verbose)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (r->set.json)
		json_note(text);
	else
		line(r, "", text);
}

/* What went wrong in kretry; always. */
void complain(struct run *r, const char *format, ...)
{
	char text[1024];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	line(r, RED, text);
}

static void result_text(const struct run *r, char *text, size_t size)
{
	int status = r->attempt.status;
	const char *name = NULL;
	char duration[UNIT_TEXT];
	size_t len;

	if (r->attempt.timed_out) {
		snprintf(text, size, "timed out after %s",
			 shown_duration(r->set.timeout_ns, duration));
		return;
	}
	if (!WIFSIGNALED(status)) {
		snprintf(text, size, "exit status %d", WEXITSTATUS(status));
	} else {
		name = sigabbrev_np(WTERMSIG(status));
		snprintf(text, size, name ? "killed by SIG%s%s" : "killed by a signal%s%s",
			 name ? name : "", WCOREDUMP(status) ? " (core dumped)" : "");
	}
	len = strlen(text);
	if (r->hint.http)
		snprintf(text + len, size - len, ", HTTP %d", r->hint.http);
}

/* "attempt 2 of 5", or "attempt 2" without a limit. */
static void number_text(const struct run *r, char *text, size_t size)
{
	if (r->limit)
		snprintf(text, size, "attempt %" PRIu64 " of %" PRIu64, r->attempt.number,
			 r->limit);
	else
		snprintf(text, size, "attempt %" PRIu64, r->attempt.number);
}

static void next_text(const struct run *r, char *text, size_t size)
{
	uint64_t left = deadline_left(r);
	char duration[UNIT_TEXT];

	*text = '\0';
	if (r->op.verdict != KRETRY_RETRY)
		return;
	if (!left)
		snprintf(text, size, "; next now");
	else
		snprintf(text, size, "; next in %s", shown_duration(left, duration));
}

/* Of a failed attempt; with --verbose of one that succeeds after others, too. */
void progress_attempt(struct run *r)
{
	bool ok = r->attempt.class == KRETRY_EVENT_OK;
	char number[64], result[96], next[80], text[300];

	if (r->set.quiet)
		return;
	if (r->set.json) {
		json_attempt(r);
		return;
	}
	if ((ok && (!r->set.verbose || r->attempt.number == 1)) || (r->nested && !r->set.verbose))
		return;
	number_text(r, number, sizeof(number));
	if (ok) {
		snprintf(text, sizeof(text), "%s: succeeded", number);
		line(r, "", text);
		return;
	}
	result_text(r, result, sizeof(result));
	next_text(r, next, sizeof(next));
	snprintf(text, sizeof(text), "%s: %s (%s)%s", number, result,
		 kretry_event_name(r->attempt.class), next);
	line(r, YELLOW, text);
}

/* Nothing more will be done, and the last attempt has failed. */
void progress_end(struct run *r, int status)
{
	char why[WHY_TEXT], text[WHY_TEXT + 128];

	if (r->set.quiet)
		return;
	if (r->set.json) {
		json_end(r, kretry_verdict_name(r->op.verdict), status);
		return;
	}
	if (r->attempt.class == KRETRY_EVENT_OK || (r->nested && !r->set.verbose))
		return;
	why_stopped(r, why, sizeof(why));
	snprintf(text, sizeof(text), "giving up after %" PRIu64 " attempt%s: %s%s%s",
		 r->attempt.number, r->attempt.number == 1 ? "" : "s",
		 kretry_is_stop(r->op.verdict) ? kretry_verdict_name(r->op.verdict) : "cancelled",
		 *why ? ": " : "", why);
	line(r, RED, text);
}

/* The first attempt was not admitted. */
void progress_refused(struct run *r)
{
	char why[WHY_TEXT], text[WHY_TEXT + 64];

	if (r->set.quiet)
		return;
	if (r->set.json) {
		json_end(r, kretry_verdict_name(r->op.verdict), EXIT_REFUSED);
		return;
	}
	why_stopped(r, why, sizeof(why));
	snprintf(text, sizeof(text), "not run: %s%s%s", kretry_verdict_name(r->op.verdict),
		 *why ? ": " : "", why);
	line(r, RED, text);
}
