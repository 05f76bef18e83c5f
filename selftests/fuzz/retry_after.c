// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry_parse_retry_after(): the first line is the value, the second, if any, that of Date. */
#include "fuzz.h"

#include <kretry.h>

#define SEC	1000000000ULL

/* At most 9 digits, and 9 of a fraction: what they say, by other means. False for all else. */
static bool simple(const char *text, uint64_t *ns)
{
	size_t whole = strspn(text, "0123456789"), part = 0;
	unsigned int i;

	if (!whole || whole > 9)
		return false;
	if (text[whole] == '.')
		part = strspn(text + whole + 1, "0123456789");
	if (part > 9 || text[whole + (part ? part + 1 : 0)])
		return false;
	*ns = strtoull(text, NULL, 10) * SEC;
	if (part) {
		uint64_t fraction = strtoull(text + whole + 1, NULL, 10);

		for (i = 0; i < 9 - part; i++)
			fraction *= 10;
		*ns += fraction;
	}
	return true;
}

/* More seconds than a duration can have: none of these wraps. */
static bool endless(const char *text)
{
	text += strspn(text, "0");
	return strspn(text, "0123456789") > 10 && !text[strspn(text, "0123456789")];
}

/* Blanks around it change nothing. */
static void with_blanks(const char *value, const char *date, int ret, uint64_t ns)
{
	char *padded = malloc(strlen(value) + 5);
	uint64_t again = POISON;

	sprintf(padded, " \t%s \t", value);
	ENSURE(kretry_parse_retry_after(padded, date, &again) == ret);
	/* The clock goes on where there is no Date. */
	ENSURE(again <= ns && (again == ns || ns - again < 10 * SEC));
	free(padded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *value = text_of(data, size), *date = strchr(value, '\n');
	uint64_t ns = POISON, expected;
	int ret;

	if (date)
		*date++ = '\0';
	ret = kretry_parse_retry_after(value, date, &ns);
	ENSURE(ret == 0 || ret == -ENOENT);
	ENSURE(ret ? ns == POISON : ns <= KRETRY_NS_MAX);
	if (simple(value, &expected))
		ENSURE(!ret && ns == expected);
	if (endless(value))
		ENSURE(!ret && ns == KRETRY_NS_MAX);
	if (!value[strspn(value, " \t\r\n")] || *value == '-')
		ENSURE(ret);
	with_blanks(value, date, ret, ns);
	free(value);
	return 0;
}
