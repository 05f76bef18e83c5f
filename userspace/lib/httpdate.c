// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The three forms of a date that RFC 9110, 5.6.7 has, to the letter. Not strptime(), which knows
 * the names of the locale and takes half a date for one. The day of the week has to be one, but
 * need not be that of the date, which says it all.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "hint.h"

#define YEARS_AHEAD	50	/* a year of two digits is the one that is at most so far off */

static const char days[] = "Sun\0Mon\0Tue\0Wed\0Thu\0Fri\0Sat";
static const char long_days[] = "Sunday\0Monday\0Tuesday\0Wednesday\0Thursday\0Friday\0Saturday";
static const char months[] = "Jan\0Feb\0Mar\0Apr\0May\0Jun\0Jul\0Aug\0Sep\0Oct\0Nov\0Dec";

/* Which of the @count @names *@text begins with, and past it; -1 for none. */
static int take_name(const char **text, const char *names, int count)
{
	size_t len;
	int i;

	for (i = 0; i < count; i++, names += len + 1) {
		len = strlen(names);
		if (strncmp(*text, names, len))
			continue;
		*text += len;
		return i;
	}
	return -1;
}

static bool take(const char **text, const char *literal)
{
	return take_name(text, literal, 1) == 0;
}

/* Exactly @digits of them; -1 for fewer. */
static int take_number(const char **text, int digits)
{
	int value = 0;

	for (; digits; digits--, ++*text) {
		if (!is_digit(**text))
			return -1;
		value = value * 10 + **text - '0';
	}
	return value;
}

static bool take_time(const char **text, struct tm *tm)
{
	tm->tm_hour = take_number(text, 2);
	if (tm->tm_hour < 0 || !take(text, ":"))
		return false;
	tm->tm_min = take_number(text, 2);
	if (tm->tm_min < 0 || !take(text, ":"))
		return false;
	tm->tm_sec = take_number(text, 2);
	return tm->tm_sec >= 0 && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

static bool take_month(const char **text, struct tm *tm)
{
	tm->tm_mon = take_name(text, months, 12);
	return tm->tm_mon >= 0;
}

/* The year in use that ends in these two digits: from 49 years ago to 50 ahead. */
static int whole_year(int two)
{
	time_t now = time(NULL);
	struct tm tm;
	int last;

	if (!gmtime_r(&now, &tm))
		return -1;
	last = tm.tm_year + 1900 + YEARS_AHEAD;
	return last - (last % 100 - two + 100) % 100;
}

/* "06 Nov 1994 08:49:37 GMT", or with dashes and two digits of the year */
static bool take_date(const char **text, struct tm *tm, bool old)
{
	const char *gap = old ? "-" : " ";
	int year;

	tm->tm_mday = take_number(text, 2);
	if (tm->tm_mday < 0 || !take(text, gap) || !take_month(text, tm) || !take(text, gap))
		return false;
	year = take_number(text, old ? 2 : 4);
	if (year < 0)
		return false;
	tm->tm_year = (old ? whole_year(year) : year) - 1900;
	return take(text, " ") && take_time(text, tm) && take(text, " GMT");
}

/* "Nov  6 08:49:37 1994" */
static bool take_asctime(const char **text, struct tm *tm)
{
	int year;

	if (!take_month(text, tm) || !take(text, " "))
		return false;
	tm->tm_mday = take_number(text, take(text, " ") ? 1 : 2);
	if (tm->tm_mday < 0 || !take(text, " ") || !take_time(text, tm) || !take(text, " "))
		return false;
	year = take_number(text, 4);
	tm->tm_year = year - 1900;
	return year >= 0;
}

static bool take_any(const char **text, struct tm *tm)
{
	if (take_name(text, long_days, 7) >= 0)
		return take(text, ", ") && take_date(text, tm, true);
	if (take_name(text, days, 7) < 0)
		return false;
	if (take(text, ", "))
		return take_date(text, tm, false);
	return take(text, " ") && take_asctime(text, tm);
}

int http_date(const char *text, int64_t *seconds)
{
	struct tm tm = { 0 };
	time_t time;
	int day;

	text += strspn(text, HTTP_BLANK);
	if (!take_any(&text, &tm) || text[strspn(text, HTTP_BLANK)])
		return -ENOENT;
	/* It moves the 31st of June on to July. */
	day = tm.tm_mday;
	if (day < 1 || day > 31)
		return -ENOENT;
	if (tm.tm_sec == 60)
		tm.tm_sec = 59;
	time = timegm(&tm);
	if (tm.tm_mday != day)
		return -ENOENT;
	*seconds = time;
	return 0;
}
