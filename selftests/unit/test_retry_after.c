// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Retry-After and RateLimit-Reset: seconds and the three forms of a date, and what is neither. */
#include "dates.h"

#include <errno.h>
#include <string.h>

#include "kretry.h"

#define POISON	0x5a5a5a5a5a5a5a5aULL
#define TIMES	50000
#define YEAR	31556952LL
#define DATE	"Sun, 06 Nov 1994 08:49:37 GMT"

typedef int (*parse_fn)(const char *value, const char *date, uint64_t *hint_ns);

static void assert_hint(parse_fn parse, const char *value, const char *date, u64 expected)
{
	uint64_t ns = POISON;
	int ret = parse(value, date, &ns);

	if (ret || ns != expected)
		fail_msg("\"%s\": %d, %llu ns", value, ret, (unsigned long long)ns);
}

static void assert_no_hint(parse_fn parse, const char *value)
{
	uint64_t ns = POISON;
	int ret = parse(value, DATE, &ns);

	if (ret != -ENOENT || ns != POISON)
		fail_msg("\"%s\": %d, %llu ns", value, ret, (unsigned long long)ns);
}

/* -------- seconds -------- */

static void seconds_and_fractions_are_exact_and_rounded_up(void **state)
{
	static const struct {
		const char	*text;
		u64		ns;
	} cases[] = {
		{ "0", 0 }, { "000", 0 }, { "120", 120 * SEC }, { " \t7 \t", 7 * SEC },
		{ "7\r\n", 7 * SEC }, { "0.5", SEC / 2 }, { "1.25", SEC + SEC / 4 },
		{ "0.000", 0 },
		{ "1.000000001", SEC + 1 }, { "0.0000000001", 1 },
		{ "0.00000000000000000000001", 1 },
		{ "0.9999999999", SEC }, { "0.1234567891", 123456790 },
		{ "9223372036", 9223372036 * SEC }, { "9223372037", NS_MAX },
		{ "9223372036.854775807", NS_MAX }, { "9223372036.854775806", NS_MAX - 1 },
		{ "18446744073709551615", NS_MAX }, { "18446744073709551617", NS_MAX },
		{ "999999999999999999999999999999999999999999999999999999999999", NS_MAX },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_hint(kretry_parse_retry_after, cases[i].text, NULL, cases[i].ns);
}

static void garbage_is_no_hint_and_changes_nothing(void **state)
{
	static const char *const texts[] = {
		"", " ", "-1", "+1", "-0", "1.", ".5", ".", "1,5", "1e3", "0x10", "1s", "1 2",
		"1;2",
		"soon", "\"5\"", "infinity", "nan", "12:00", "\xc2\xb2", "1.5.5", "1. 5",
		"06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37",
		"Sun, 06 Nov 1994 08:49:37 UTC",
		"Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 6 Nov 1994 08:49:37 GMT",
		"Sun,06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
		"sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
		"Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
		"Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
		"Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 2100 08:49:37 GMT",
		"Sun, 32 Jan 1994 08:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT x",
		"Sun, 06 Nov 19945 08:49:37 GMT", "Sun, 06 Nov -994 08:49:37 GMT",
		"Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday 06-Nov-94 08:49:37 GMT",
		"Sun Nov 06 08:49:37 94", "Sun Nov 6 08:49:37 1994", "Sun Nov  16 08:49:37 1994",
		"Sun Nov  6 08:49:37 1994 GMT", "Son Nov  6 08:49:37 1994", "Sun", "Sun,",
		"Sunday, ",
		"1994-11-06T08:49:37Z",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_no_hint(kretry_parse_retry_after, texts[i]);
		assert_no_hint(kretry_parse_ratelimit_reset, texts[i]);
	}
	assert_no_hint(kretry_parse_retry_after, NULL);
	assert_no_hint(kretry_parse_ratelimit_reset, NULL);
	/* All that begins like a date, too. */
	assert_no_hint(kretry_parse_ratelimit_reset, DATE);
}

/* -------- dates -------- */

/* Each form, with a server whose clock is 300 s ahead of ours, and without a Date. */
static void date_120_s_ahead_is_a_wait_of_120_s_in_three_forms(void **state)
{
	enum form form;
	time_t now = time(NULL);
	char value[64], date[64];
	uint64_t ns;

	(void)state;
	format_date(IMF_FIXDATE, now + 300, date, sizeof(date));
	for (form = 0; form < FORMS; form++) {
		format_date(form, now + 300 + 120, value, sizeof(value));
		assert_hint(kretry_parse_retry_after, value, date, 120 * SEC);
		format_date(form, time(NULL) + 120, value, sizeof(value));
		ns = POISON;
		assert_int_equal(kretry_parse_retry_after(value, NULL, &ns), 0);
		assert_in_range(ns, 119 * SEC, 121 * SEC);
		ns = POISON;
		assert_int_equal(kretry_parse_retry_after(value, "yesterday", &ns), 0);
		assert_in_range(ns, 119 * SEC, 121 * SEC);
		format_date(form, now + 300, value, sizeof(value));
		assert_hint(kretry_parse_retry_after, value, date, 0);
		format_date(form, now + 299, value, sizeof(value));
		assert_hint(kretry_parse_retry_after, value, date, 0);
	}
	assert_hint(kretry_parse_retry_after, "7", date, 7 * SEC);
}

/* The examples of the RFC, with blanks, another day of the week, and a leap second. */
static void dates_of_the_standard_are_understood(void **state)
{
	static const struct {
		const char	*value;
		u64		ns;
	} cases[] = {
		{ DATE, 0 }, { "\t" DATE "  ", 0 }, { "Sun Nov  6 08:49:38 1994", SEC },
		{ "Sun Nov 16 08:49:37 1994", 864000 * SEC },
		{ "Mon, 06 Nov 1994 08:49:40 GMT", 3 * SEC },
		{ "Sun, 06 Nov 1994 08:49:60 GMT", 22 * SEC },
		{ "Fri, 31 Dec 1999 23:59:59 GMT", 162573022 * SEC },
		{ "Thu, 29 Feb 1996 08:49:37 GMT", 41472000 * SEC },
		{ "Fri, 31 Dec 9999 23:59:59 GMT", NS_MAX }, { "Sat, 01 Jan 0000 00:00:00 GMT", 0 },
		{ "Thu Jan  1 00:00:00 1970", 0 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_hint(kretry_parse_retry_after, cases[i].value, DATE, cases[i].ns);
	/* The longest there is, from a Date long before 1970. */
	assert_hint(kretry_parse_retry_after, "Fri, 31 Dec 9999 23:59:59 GMT",
		    "Sat, 01 Jan 0000 00:00:00 GMT", NS_MAX);
}

/* Two digits are a year from 49 years ago to 50 ahead. */
static void two_digits_are_the_nearest_year(void **state)
{
	char value[64], date[64];
	struct tm tm;
	time_t now = time(NULL), then;
	int year;

	(void)state;
	assert_non_null(gmtime_r(&now, &tm));
	for (year = tm.tm_year - 49; year <= tm.tm_year + 50; year++) {
		struct tm at = { .tm_year = year, .tm_mon = 5, .tm_mday = 15, .tm_hour = 12 };

		then = timegm(&at);
		format_date(RFC_850, then, value, sizeof(value));
		format_date(IMF_FIXDATE, then - 5, date, sizeof(date));
		assert_hint(kretry_parse_retry_after, value, date, 5 * SEC);
		format_date(IMF_FIXDATE, then + 5, date, sizeof(date));
		assert_hint(kretry_parse_retry_after, value, date, 0);
	}
}

/* Any two times in any two forms: their difference, or 0. */
static void difference_of_any_two_times_is_exact(void **state)
{
	time_t now = time(NULL), from, to;
	char value[64], date[64];
	u64 expected;
	int i;

	(void)state;
	for (i = 0; i < TIMES; i++) {
		from = now + (time_t)(fresh_u64() % (98 * YEAR)) - 48 * YEAR;
		to = now + (time_t)(fresh_u64() % (98 * YEAR)) - 48 * YEAR;
		format_date(fresh_u64() % FORMS, from, date, sizeof(date));
		format_date(fresh_u64() % FORMS, to, value, sizeof(value));
		expected = to > from ? (u64)(to - from) * SEC : 0;
		assert_hint(kretry_parse_retry_after, value, date, expected);
	}
}

/* -------- RateLimit-Reset -------- */

/* DATE is 784111777 s after 1970; what is below 10^9 is a time to wait. */
static void reset_is_a_wait_or_a_time(void **state)
{
	static const char at[] = "Sun, 09 Sep 2001 01:46:30 GMT";	/* 999999990 */
	static const struct {
		const char	*value;
		u64		ns;
	} cases[] = {
		{ "0", 0 }, { "30", 30 * SEC }, { "0.25", SEC / 4 },
		{ "999999999", 999999999 * SEC },
		{ "1000000000", 10 * SEC }, { "1000000000.5", 10 * SEC + SEC / 2 },
		{ "999999999999", NS_MAX },
		{ "1000000000000", 10 * SEC }, { "1000000000001", 10 * SEC + MS },
		{ "1000000000000.5", 10 * SEC + 500 * US },
		{ "9223372036854775807", NS_MAX },
		{ "99999999999999999999999999", NS_MAX },
	};
	unsigned int i;
	uint64_t ns;
	char text[32];

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_hint(kretry_parse_ratelimit_reset, cases[i].value, at, cases[i].ns);
	assert_hint(kretry_parse_ratelimit_reset, "1000000000", NULL, 0);
	snprintf(text, sizeof(text), "%lld", (long long)time(NULL) + 60);
	ns = POISON;
	assert_int_equal(kretry_parse_ratelimit_reset(text, NULL, &ns), 0);
	assert_in_range(ns, 58 * SEC, 60 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seconds_and_fractions_are_exact_and_rounded_up),
		cmocka_unit_test(garbage_is_no_hint_and_changes_nothing),
		cmocka_unit_test(date_120_s_ahead_is_a_wait_of_120_s_in_three_forms),
		cmocka_unit_test(dates_of_the_standard_are_understood),
		cmocka_unit_test(two_digits_are_the_nearest_year),
		cmocka_unit_test(difference_of_any_two_times_is_exact),
		cmocka_unit_test(reset_is_a_wait_or_a_time),
	};

	/* Times are of GMT wherever this host is. */
	setenv("TZ", "XYZ-9:30", 1);
	tzset();
	return run_group(tests);
}
