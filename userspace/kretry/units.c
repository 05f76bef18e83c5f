// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Amounts as people write them, exactly: no floating point. */

#include <inttypes.h>
#include <string.h>

#include "command.h"

#define MILLION	((uint64_t)1000000)

static const struct unit {
	const char	*name;
	uint64_t	ns;
} units[] = {
	{ "ns", 1 }, { "us", 1000 }, { "µs", 1000 }, { "ms", MILLION }, { "s", 1000000000 },
	{ "m", 60000000000 }, { "min", 60000000000 }, { "h", 3600000000000 },
	{ "d", 86400000000000 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * A decimal number times @scale. *@end is what follows it. False: it is none, it is no whole number
 * of the smallest unit, or it is above KRETRY_NS_MAX.
 */
static bool parse_decimal(const char *text, uint64_t scale, uint64_t *value, const char **end)
{
	unsigned __int128 whole = 0;
	uint64_t part = 0, place = scale;

	if (!is_digit(*text))
		return false;
	for (; is_digit(*text); text++) {
		whole = whole * 10 + (unsigned int)(*text - '0');
		if (whole > KRETRY_NS_MAX)
			return false;
	}
	if (*text == '.') {
		text++;
		if (!is_digit(*text))
			return false;
		for (; is_digit(*text); text++) {
			if (*text != '0' && (place % 10 || !place))
				return false;
			place /= 10;
			part += (uint64_t)(*text - '0') * place;
		}
	}
	whole = whole * scale + part;
	*value = (uint64_t)whole;
	*end = text;
	return whole <= KRETRY_NS_MAX;
}

/* Where the unit begins: behind digits and a point. */
static const char *unit_of(const char *text)
{
	return text + strspn(text, "0123456789.");
}

const char *parse_duration(const char *text, uint64_t *ns)
{
	const char *unit = unit_of(text), *end;
	unsigned int i;

	*ns = 0;
	if (!strcmp(text, "0"))
		return NULL;
	if (!strcmp(text, "unlimited")) {
		*ns = KRETRY_NS_MAX;
		return NULL;
	}
	if (unit == text)
		return "not a duration: write 250ms, 1.5s or 2m";
	if (!*unit)
		return "a duration needs a unit: write 250ms, 1.5s or 2m";
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i].name))
			break;
	if (i == ARRAY_SIZE(units))
		return "no such unit: use ns, us, ms, s, m, h or d";
	if (!parse_decimal(text, units[i].ns, ns, &end) || end != unit)
		return "not a duration, finer than 1ns or longer than 292 years";
	return NULL;
}

const char *parse_tokens(const char *text, uint64_t *utok)
{
	const char *end;

	if (!parse_decimal(text, MILLION, utok, &end) || *end)
		return "not a number of tokens: write 500 or 0.2, in millionths at the finest";
	return NULL;
}

const char *parse_ratio(const char *text, uint64_t *ppm)
{
	bool percent = *text && text[strlen(text) - 1] == '%';
	const char *end;

	if (!parse_decimal(text, percent ? MILLION / 100 : MILLION, ppm, &end) ||
	    strcmp(end, percent ? "%" : ""))
		return "not a ratio: write 20% or 0.2, in millionths at the finest";
	return *ppm > UINT32_MAX ? "too large for a ratio" : NULL;
}

const char *parse_factor(const char *text, uint64_t *ppm)
{
	const char *end;

	if (!parse_decimal(text, MILLION, ppm, &end) || *end)
		return "not a factor: write 2 or 1.5, in millionths at the finest";
	return *ppm > UINT32_MAX ? "too large: a factor is at most 4294.967295" : NULL;
}

const char *parse_count(const char *text, uint64_t max, uint64_t *count)
{
	const char *end;

	if (!parse_decimal(text, 1, count, &end) || *end)
		return "not a whole number";
	return *count > max ? "too large" : NULL;
}

/* In the largest unit that takes no more than three decimals; minutes and more only if whole. */
const char *format_duration(uint64_t ns, char *text)
{
	const struct unit *best = &units[0], *unit;

	if (ns == 0)
		return "0";
	if (ns == KRETRY_NS_MAX)
		return "unlimited";
	for (unit = units; unit < units + ARRAY_SIZE(units); unit++) {
		if (unit->ns > ns || !strcmp(unit->name, "µs") || !strcmp(unit->name, "min"))
			continue;
		if (unit->ns > 1000000000 ? ns % unit->ns == 0 :
		    unit->ns < 1000 || ns % (unit->ns / 1000) == 0)
			best = unit;
	}
	if (ns % best->ns == 0) {
		snprintf(text, UNIT_TEXT, "%" PRIu64 "%s", ns / best->ns, best->name);
	} else {
		snprintf(text, UNIT_TEXT, "%" PRIu64 ".%03" PRIu64, ns / best->ns,
			 ns % best->ns / (best->ns / 1000));
		while (text[strlen(text) - 1] == '0')
			text[strlen(text) - 1] = '\0';
		strncat(text, best->name, UNIT_TEXT - strlen(text) - 1);
	}
	return text;
}

const char *format_millionths(uint64_t value, char *text)
{
	char *last;

	snprintf(text, UNIT_TEXT, "%" PRIu64 ".%06" PRIu64, value / MILLION, value % MILLION);
	for (last = text + strlen(text) - 1; *last == '0'; last--)
		*last = '\0';
	if (*last == '.')
		*last = '\0';
	return text;
}
