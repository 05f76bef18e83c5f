// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The dates of HTTP: one that is read, written in each form, is then read as the same. */
#include "fuzz.h"

#include <time.h>

#include "hint.h"

static const char *const forms[] = {
	"%a, %d %b %Y %H:%M:%S GMT",
	"%a %b %e %H:%M:%S %Y",
	"%A, %d-%b-%y %H:%M:%S GMT",
};

/* By the calendar, without the C library's. */
static int64_t days_before(int64_t year)
{
	year--;
	return year * 365 + year / 4 - year / 100 + year / 400;
}

static void ensure_written_is_read(int64_t seconds, const char *form)
{
	time_t time = (time_t)seconds;
	int64_t again;
	char text[64];
	struct tm tm;

	ENSURE(gmtime_r(&time, &tm));
	ENSURE(seconds / 86400 + (seconds % 86400 < 0 ? -1 : 0) + days_before(1970) ==
	       days_before(tm.tm_year + 1900LL) + tm.tm_yday);
	if (tm.tm_year + 1900 < 1000)
		return;
	ENSURE(strftime(text, sizeof(text), form, &tm));
	ENSURE(!http_date(text, &again) && again == seconds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t seconds = INT64_MIN, now = time(NULL), year = 31556952;
	char *text = text_of(data, size);
	int ret = http_date(text, &seconds);

	free(text);
	ENSURE(ret == 0 || ret == -ENOENT);
	if (ret) {
		ENSURE(seconds == INT64_MIN);
		return 0;
	}
	/* The years 0 to 9999. */
	ENSURE(seconds >= -62167219200 && seconds <= 253402300799);
	if (seconds < -62135596800)
		return 0;
	ensure_written_is_read(seconds, forms[0]);
	ensure_written_is_read(seconds, forms[1]);
	if (seconds > now - 48 * year && seconds < now + 49 * year)
		ensure_written_is_read(seconds, forms[2]);
	return 0;
}
