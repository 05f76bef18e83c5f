// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Names for logs. */

#include "internal.h"

static const char *const verdicts[] = {
	[KRETRY_GO]		= "go",
	[KRETRY_RETRY]		= "retry",
	[KRETRY_DONE]		= "done",
	[KRETRY_ERROR]		= "error",
	[KRETRY_STOP_PERMANENT]	= "stop-permanent",
	[KRETRY_STOP_UNSAFE]	= "stop-unsafe",
	[KRETRY_STOP_LIMIT]	= "stop-limit",
	[KRETRY_STOP_HINT]	= "stop-hint",
	[KRETRY_STOP_ELAPSED]	= "stop-elapsed",
	[KRETRY_STOP_BUDGET]	= "stop-budget",
	[KRETRY_STOP_OPEN]	= "stop-open",
	[KRETRY_STOP_COOLING]	= "stop-cooling",
	[KRETRY_STOP_PACED]	= "stop-paced",
};

static const char *const events[] = {
	[KRETRY_EVENT_BEGIN]		= "begin",
	[KRETRY_EVENT_OK]		= "ok",
	[KRETRY_EVENT_CANCELLED]	= "cancelled",
	[KRETRY_EVENT_TRANSIENT]	= "transient",
	[KRETRY_EVENT_THROTTLED]	= "throttled",
	[KRETRY_EVENT_UNKNOWN]		= "unknown",
	[KRETRY_EVENT_PERMANENT]	= "permanent",
};

static const char *name(const char *const *names, size_t count, unsigned int value)
{
	return value < count && names[value] ? names[value] : "?";
}

const char *kretry_verdict_name(unsigned int verdict)
{
	return name(verdicts, sizeof(verdicts) / sizeof(*verdicts), verdict);
}

const char *kretry_event_name(unsigned int event)
{
	return name(events, sizeof(events) / sizeof(*events), event);
}
