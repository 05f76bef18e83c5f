// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How long a server asks to wait. */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "hint.h"

#define NS_PER_SEC	1000000000ULL
#define FIRST_TIME	1000000000ULL	/* as seconds to wait, 31 years: it is a time */
#define FIRST_MS_TIME	1000000000000ULL	/* as a time, the year 33658: it is in ms */

/* @value * 10 + @digit, or KRETRY_NS_MAX, which stays. */
static u64 append(u64 value, char digit)
{
	return value > (KRETRY_NS_MAX - 9) / 10 ? KRETRY_NS_MAX : value * 10 + (u64)(digit - '0');
}

static u64 seconds_ns(u64 seconds)
{
	return seconds > KRETRY_NS_MAX / NS_PER_SEC ? KRETRY_NS_MAX : seconds * NS_PER_SEC;
}

static u64 add(u64 a, u64 b)
{
	return a > KRETRY_NS_MAX - b ? KRETRY_NS_MAX : a + b;
}

/* "12" or "1.5": whole seconds, and the rest in ns */
static int parse_number(const char *text, u64 *seconds, u64 *rest)
{
	u64 place = NS_PER_SEC, part = 0;
	bool finer = false;

	text += strspn(text, HTTP_BLANK);
	if (!is_digit(*text))
		return -ENOENT;
	for (*seconds = 0; is_digit(*text); text++)
		*seconds = append(*seconds, *text);
	if (*text == '.') {
		if (!is_digit(*++text))
			return -ENOENT;
		for (; is_digit(*text); text++) {
			place /= 10;
			part += (u64)(*text - '0') * place;
			finer |= !place && *text != '0';
		}
	}
	*rest = part + finer;
	return text[strspn(text, HTTP_BLANK)] ? -ENOENT : 0;
}

int parse_seconds(const char *text, uint64_t *ns)
{
	u64 seconds, rest;

	if (parse_number(text, &seconds, &rest))
		return -ENOENT;
	*ns = add(seconds_ns(seconds), rest);
	return 0;
}

/* From @date, or else this host's clock, to @seconds and @rest since 1970. */
static u64 from_date(const char *date, int64_t seconds, u64 rest)
{
	struct timespec now = { 0 };
	int64_t base, ns;

	if (!date || http_date(date, &base)) {
		clock_gettime(CLOCK_REALTIME, &now);
		base = now.tv_sec;
	}
	if (seconds < base)
		return 0;
	ns = (int64_t)rest - now.tv_nsec;
	if (seconds == base && ns < 0)
		return 0;
	/* A clock before 1970 is no overflow either. */
	if (base < 0 && seconds > INT64_MAX + base)
		return KRETRY_NS_MAX;
	if (ns < 0)
		return add(seconds_ns((u64)(seconds - base) - 1), NS_PER_SEC - (u64)-ns);
	return add(seconds_ns((u64)(seconds - base)), (u64)ns);
}

int kretry_parse_retry_after(const char *value, const char *date, uint64_t *hint_ns)
{
	int64_t seconds;
	uint64_t ns;

	if (!value)
		return -ENOENT;
	if (!parse_seconds(value, &ns)) {
		*hint_ns = ns;
		return 0;
	}
	if (http_date(value, &seconds))
		return -ENOENT;
	*hint_ns = from_date(date, seconds, 0);
	return 0;
}

int kretry_parse_ratelimit_reset(const char *value, const char *date, uint64_t *hint_ns)
{
	u64 seconds, rest;

	if (!value || parse_number(value, &seconds, &rest))
		return -ENOENT;
	if (seconds >= FIRST_MS_TIME) {
		rest = seconds % 1000 * 1000000 + rest / 1000;
		seconds /= 1000;
	} else if (seconds < FIRST_TIME) {
		*hint_ns = add(seconds_ns(seconds), rest);
		return 0;
	}
	*hint_ns = from_date(date, (int64_t)seconds, rest);
	return 0;
}
