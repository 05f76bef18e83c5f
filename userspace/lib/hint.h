/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Between the files that read what a server says. */
#ifndef KRETRY_HINT_H
#define KRETRY_HINT_H

#include "internal.h"

/* What may stand around a value. */
#define HTTP_BLANK	" \t\r\n"

/* isdigit() asks the locale. */
static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* httpdate.c: seconds since 1970, or -ENOENT. A leap second is the one before it. */
int http_date(const char *text, int64_t *seconds);

/* hint.c: "12" or "1.5", blanks around it, to the ns, rounded up and saturated; or -ENOENT */
int parse_seconds(const char *text, uint64_t *ns);

#endif /* KRETRY_HINT_H */
