// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry_parse_ratelimit_reset(): the first line is the value, the second, if any, that of Date. */
#include "fuzz.h"

#include <kretry.h>

#define TIME	1000000000ULL	/* from here on it is one, in seconds, and below a wait */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *value = text_of(data, size), *date = strchr(value, '\n');
	uint64_t ns = POISON, wait = POISON;
	int ret, seconds;

	if (date)
		*date++ = '\0';
	ret = kretry_parse_ratelimit_reset(value, date, &ns);
	ENSURE(ret == 0 || ret == -ENOENT);
	ENSURE(ret ? ns == POISON : ns <= KRETRY_NS_MAX);
	/* A number is one for Retry-After too; then it is the same wait, or a time. */
	seconds = kretry_parse_retry_after(value, date, &wait);
	if (!ret)
		ENSURE(!seconds && (wait >= TIME * 1000000000 || ns == wait));
	if (!seconds && ret)
		ENSURE(strstr(value, ":"));
	free(value);
	return 0;
}
