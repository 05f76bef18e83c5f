// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Why there is no further attempt, in words. */

#include "run.h"

/* The options are what people know of a private policy. */
static const char *name_of(const struct run *r, const char *option, const char *key)
{
	return r->o->value[OPT_POLICY] ? key : option;
}

static void why_hint(const struct run *r, char *text, size_t size)
{
	char hint[UNIT_TEXT], limit[UNIT_TEXT];

	if (r->nested)
		snprintf(text, size, "an outer layer retries already: see --nested");
	else if (r->input.lost)
		snprintf(text, size, "the input cannot be read again");
	else if (r->hint.given)
		snprintf(text, size, "the server asks to wait %s, longer than %s %s",
			 shown_duration(r->hint.ns, hint), name_of(r, "--max-hint", "hint_limit"),
			 shown_duration(r->policy.hint_limit_ns, limit));
}

static void why_elapsed(const struct run *r, char *text, size_t size)
{
	const char *name = name_of(r, "--total", "max_elapsed");
	char hint[UNIT_TEXT], limit[UNIT_TEXT];

	if (is_hint_too_long(r))
		snprintf(text, size, "the server asks to wait %s, longer than %s %s allows",
			 shown_duration(r->hint.ns, hint), name,
			 shown_duration(r->policy.max_elapsed_ns, limit));
	else
		snprintf(text, size, "the next attempt would start later than %s %s allows", name,
			 shown_duration(r->policy.max_elapsed_ns, limit));
}

/* With when the next would be let through, where that is known. */
static void why_not_yet(const struct run *r, const char *what, char *text, size_t size)
{
	uint64_t left = deadline_left(r);
	char duration[UNIT_TEXT];

	if (left)
		snprintf(text, size, "%s: try again in %s", what, shown_duration(left, duration));
	else
		snprintf(text, size, "%s", what);
}

const char *why_stopped(const struct run *r, char *text, size_t size)
{
	*text = '\0';
	switch (r->op.verdict) {
	case KRETRY_STOP_UNSAFE:
		snprintf(text, size, "it may have been done, and is to be done once only");
		break;
	case KRETRY_STOP_HINT:
		why_hint(r, text, size);
		break;
	case KRETRY_STOP_ELAPSED:
		why_elapsed(r, text, size);
		break;
	case KRETRY_STOP_BUDGET:
		snprintf(text, size, "the budget is exhausted");
		break;
	case KRETRY_STOP_OPEN:
		why_not_yet(r, "the circuit breaker is open", text, size);
		break;
	case KRETRY_STOP_COOLING:
		why_not_yet(r, "the server has asked everybody to wait", text, size);
		break;
	case KRETRY_STOP_PACED:
		snprintf(text, size, "the next slot is too far away");
		break;
	}
	return text;
}
