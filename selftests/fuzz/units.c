// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Amounts as people write them: what is accepted can be written, and is then read as the same. */
#include "fuzz.h"

#include "command.h"

static void duration(const char *text)
{
	uint64_t ns = POISON, again = POISON;
	char written[UNIT_TEXT];

	if (parse_duration(text, &ns))
		return;
	ENSURE(ns <= KRETRY_NS_MAX);
	ENSURE(!parse_duration(format_duration(ns, written), &again) && again == ns);
	/* A bare number has no unit; only 0 needs none. */
	ENSURE(!*text || text[strspn(text, "0123456789.")] || !ns);
}

static void millionths(const char *(*parse)(const char *, uint64_t *), const char *text,
		       uint64_t most)
{
	uint64_t value = POISON, again = POISON;
	char written[UNIT_TEXT];

	if (parse(text, &value))
		return;
	ENSURE(value <= most);
	ENSURE(!parse(format_millionths(value, written), &again) && again == value);
}

/* Digits, and after a point nothing but zeros. */
static void count(const char *text)
{
	uint64_t value = POISON, expected;
	bool whole;
	char *end;

	errno = 0;
	expected = strtoull(text, &end, 10);
	whole = *text >= '0' && *text <= '9' && !errno && expected <= UINT32_MAX;
	if (*end == '.' && end[1])
		end += 1 + strspn(end + 1, "0");
	whole &= !*end;
	ENSURE(whole == !parse_count(text, UINT32_MAX, &value));
	ENSURE(!whole || value == expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);

	duration(text);
	millionths(parse_tokens, text, KRETRY_NS_MAX);
	millionths(parse_ratio, text, UINT32_MAX);
	millionths(parse_factor, text, UINT32_MAX);
	count(text);
	free(text);
	return 0;
}
