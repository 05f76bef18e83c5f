/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Times written in the three forms of HTTP, by other code than reads them. */
#ifndef KRETRY_UNIT_DATES_H
#define KRETRY_UNIT_DATES_H

#include "unit.h"

#include <time.h>

enum form { IMF_FIXDATE, RFC_850, ASCTIME, FORMS };

static inline void format_date(enum form form, time_t time, char *text, size_t size)
{
	static const char *const formats[] = {
		[IMF_FIXDATE]	= "%a, %d %b %Y %H:%M:%S GMT",
		[RFC_850]	= "%A, %d-%b-%y %H:%M:%S GMT",
		[ASCTIME]	= "%a %b %e %H:%M:%S %Y",
	};
	struct tm tm;

	assert_non_null(gmtime_r(&time, &tm));
	assert_true(strftime(text, size, formats[form], &tm));
}

#endif /* KRETRY_UNIT_DATES_H */
