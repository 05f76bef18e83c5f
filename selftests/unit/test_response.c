// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The head of a response, as servers, proxies and curl -D write it. */
#include "unit.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "kretry.h"

#define NONE	(~0ULL)
#define SP	" "	/* at the end of a line, as HTTP/2 has it */
#define DATE	"Date: Sun, 06 Nov 1994 08:49:37 GMT\n"

static const struct {
	const char	*head;
	int		status;
	u64		hint_ns;
} cases[] = {
	{ "HTTP/1.1 200 OK\n\n", 200, NONE },
	{ "HTTP/1.1 503 Service Unavailable\nRetry-After: 2\n\n", 503, 2 * SEC },
	{ "HTTP/1.0 500 x\nRetry-After:2", 500, 2 * SEC },
	{ "HTTP/2 503" SP "\nretry-after: 2\n\n", 503, 2 * SEC },
	{ "HTTP/2 503\nretry-after: 2\n\n", 503, 2 * SEC },
	{ "HTTP/3 429" SP "\nRETRY-AFTER:\t 1.5" SP "\t\n\n", 429, 1500 * MS },
	{ "HTTP/1.1 429 x\nRetry-After: 0\n\n", 429, 0 },
	{ "HTTP/1.1 429 x\nRetry-After: soon\n\n", 429, NONE },
	{ "HTTP/1.1 429 x\nRetry-After:\n\n", 429, NONE },
	{ "HTTP/1.1 429 x\nXRetry-After: 2\nRetry-After-x: 3\nRetry-After : 4\n\n", 429, NONE },
	/* Of several the longest, and what is garbage does not count. */
	{ "HTTP/1.1 503 x\nRetry-After: 2\nRetry-After: 5\nRetry-After: x\nRetry-After: 3\n\n", 503,
	  5 * SEC },
	/* A date, before or after the Date that it is relative to. */
	{ "HTTP/1.1 503 x\n" DATE "Retry-After: Sun, 06 Nov 1994 08:49:39 GMT\n\n", 503, 2 * SEC },
	{ "HTTP/1.1 503 x\nRetry-After: Sun Nov  6 08:49:39 1994\n" DATE "\n", 503, 2 * SEC },
	{ "HTTP/1.1 503 x\n" DATE "Date: x\nRetry-After: Sun Nov  6 08:49:37 1994\n\n", 503, 0 },
	/* Folded. */
	{ "HTTP/1.1 503 x\nRetry-After:\n 2\n\n", 503, 2 * SEC },
	{ "HTTP/1.1 503 x\nX: y\n\tRetry-After: 3\nRetry-After: 2\n" SP "\n\n", 503, 2 * SEC },
	{ "HTTP/1.1 503 x\n" DATE "Retry-After: Sun, 06 Nov\n  1994 08:49:39 GMT\n\n", 503,
	  2 * SEC },
	/* Of several heads the last counts, alone. */
	{ "HTTP/1.1 100 Continue\n\nHTTP/1.1 503 x\nRetry-After: 2\n\n", 503, 2 * SEC },
	{ "HTTP/1.1 503 x\nRetry-After: 2\n\nHTTP/1.1 200 OK\nX: y\n\n", 200, NONE },
	{ "HTTP/1.1 200 Connection established\n\nHTTP/2 429" SP "\n" DATE
	  "retry-after: Sun, 06 Nov 1994 08:49:38 GMT\n\n", 429, SEC },
	{ "HTTP/1.1 301 x\n" DATE "Location: y\n\nHTTP/1.1 302 z\n\nHTTP/1.1 404 x\n\n", 404,
	  NONE },
	/* What comes after the head is not read. */
	{ "HTTP/1.1 503 x\n\nRetry-After: 2\n\n", 503, NONE },
	{ "HTTP/1.1 503 x\nRetry-After: 1\n\nbody\n\nHTTP/1.1 200 OK\n\n", 503, SEC },
	{ "HTTP/1.1 503 x\nRetry-After: 1\n\n\nHTTP/1.1 200 OK\n\n", 503, SEC },
	/* A line that is no header. */
	{ "HTTP/1.1 503 x\nnonsense\n: 7\nRetry-After: 1\n\n", 503, SEC },
	/* RateLimit-Reset: when the quota is used up. */
	{ "HTTP/1.1 429 x\nRateLimit-Reset: 3\n\n", 429, 3 * SEC },
	{ "HTTP/1.1 503 x\nx-ratelimit-reset: 3\n\n", 503, 3 * SEC },
	{ "HTTP/1.1 200 x\nRateLimit-Reset: 3\n\n", 200, NONE },
	{ "HTTP/1.1 403 x\nX-RateLimit-Reset: 3\nX-RateLimit-Remaining: 5\n\n", 403, NONE },
	{ "HTTP/1.1 403 x\nX-RateLimit-Reset: 3\nX-RateLimit-Remaining: 0\n\n", 403, 3 * SEC },
	{ "HTTP/1.1 403 x\nX-RateLimit-Remaining: 0\n\n", 403, NONE },
	{ "HTTP/1.1 429 x\nX-Rate-Limit-Reset: 1000000003\nDate: Sun, 09 Sep 2001 01:46:40 GMT\n\n",
	  429, 3 * SEC },
	/* The word for it goes first. */
	{ "HTTP/1.1 429 x\nRateLimit-Reset: 30\nRetry-After: 2\n\n", 429, 2 * SEC },
	{ "HTTP/1.1 429 x\nRateLimit-Reset: 30\nRetry-After: x\n\n", 429, 30 * SEC },
	/* RateLimit, of several drafts. */
	{ "HTTP/1.1 429 x\nRateLimit: limit=10, remaining=0, reset=30\n\n", 429, 30 * SEC },
	{ "HTTP/1.1 429 x\nRateLimit: \"day\";r=0;t=30\n\n", 429, 30 * SEC },
	{ "HTTP/1.1 200 x\nRateLimit: \"day\";r=0;t=30\n\n", 200, 30 * SEC },
	{ "HTTP/1.1 200 x\nRateLimit: \"day\";r=1;t=30\n\n", 200, NONE },
	{ "HTTP/1.1 429 x\nRateLimit: \"day\";r=9;t=3000, \"second\"; r=0; t=1\n\n", 429, SEC },
	{ "HTTP/1.1 429 x\nRateLimit: \"a\";r=0\nRateLimit: \"b\";r=9;t=4\n\n", 429, 4 * SEC },
	{ "HTTP/1.1 429 x\nRateLimit: \"a\";r=0;t=-1\n\n", 429, NONE },
	{ "HTTP/1.1 429 x\nRateLimit: r, t, =, ;;;\n\n", 429, NONE },
};

/* Exactly as long as the text, so that a read past its end is seen. */
static int parse(const char *text, size_t length, struct kretry_response *response)
{
	char *copy = malloc(length ? length : 1);
	int ret;

	memcpy(copy, text, length);
	ret = kretry_parse_response(copy, length, response);
	free(copy);
	return ret;
}

static void assert_response(const char *text, int status, u64 hint_ns)
{
	struct kretry_response r = { .status = -1, .flags = 0x5a5a, .hint_ns = 77 };
	bool none = hint_ns == NONE;

	assert_int_equal(parse(text, strlen(text), &r), 0);
	if (r.status != status || r.flags != (none ? 0 : KRETRY_OP_HINT) ||
	    r.hint_ns != (none ? 0 : hint_ns))
		fail_msg("%s: status %d, flags %#x, %llu ns", text, r.status, r.flags,
			 (unsigned long long)r.hint_ns);
}

static void heads_say_what_they_say(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_response(cases[i].head, cases[i].status, cases[i].hint_ns);
}

static void line_ends_of_both_kinds_are_the_same(void **state)
{
	char text[1024], *to;
	const char *from;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (to = text, from = cases[i].head; *from; *to++ = *from++)
			if (*from == '\n')
				*to++ = '\r';
		*to = '\0';
		assert_response(text, cases[i].status, cases[i].hint_ns);
	}
}

/* The names of headers, that is; "HTTP/" and dates are as they are. */
static void names_in_any_case_are_the_same(void **state)
{
	char text[1024];
	unsigned int i, at;
	bool name;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		strcpy(text, cases[i].head);
		for (name = false, at = 0; text[at]; at++) {
			if (text[at] == '\n')
				name = strncmp(text + at + 1, "HTTP/", 5);
			else if (text[at] == ':' || isblank(text[at]))
				name = false;
			else if (name)
				text[at] = (char)(at % 2 ? toupper(text[at]) : tolower(text[at]));
		}
		assert_response(text, cases[i].status, cases[i].hint_ns);
	}
}

static void every_beginning_of_a_head_is_read_within_its_bounds(void **state)
{
	struct kretry_response r;
	unsigned int i;
	size_t length;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		for (length = 0; length <= strlen(cases[i].head); length++)
			if (!parse(cases[i].head, length, &r))
				assert_in_range(r.status, 100, 999);
}

static void text_without_a_status_line_is_refused_and_changes_nothing(void **state)
{
	static const char *const texts[] = {
		"", "\n", "HTTP/", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2000 x\n",
		"HTTP/1.1 099 x\n", "HTTP/1.1 2x0 x\n", "HTTP/1.1  200 x\n", "HTTP/x 200 OK\n",
		" HTTP/1.1 200 OK\n", "http/1.1 200 OK\n", "\nHTTP/1.1 200 OK\n", "ICY 200 OK\n",
		"Retry-After: 2\n", "<html>\n",
	};
	struct kretry_response r, poison;
	unsigned int i;

	(void)state;
	memset(&poison, 0x5a, sizeof(poison));
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		r = poison;
		if (parse(texts[i], strlen(texts[i]), &r) != -ENOENT)
			fail_msg("\"%s\" has a status", texts[i]);
		assert_memory_equal(&r, &poison, sizeof(r));
	}
	assert_int_equal(kretry_parse_response(NULL, 0, &r), -ENOENT);
}

/* A value of any length, and one with a NUL in it: no hint, not half of one. */
static void overlong_and_broken_values_are_no_hint(void **state)
{
	static const char with_nul[] = "HTTP/1.1 503 x\nRetry-After: 2\0 0\nX: y\n\n";
	static const char begin[] = "HTTP/1.1 503 x\nRetry-After: 2";
	char text[4096];
	struct kretry_response r;
	size_t blanks;

	(void)state;
	assert_int_equal(parse(with_nul, sizeof(with_nul) - 1, &r), 0);
	assert_int_equal(r.flags, 0);
	for (blanks = 400; blanks < 600; blanks++) {
		memset(text, ' ', sizeof(text));
		memcpy(text, begin, sizeof(begin) - 1);
		memcpy(text + sizeof(begin) - 1 + blanks, "x\n\n", 4);
		assert_response(text, 503, NONE);
		memcpy(text + sizeof(begin) - 1 + blanks, "\n\n", 3);
		assert_response(text, 503, 2 * SEC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_say_what_they_say),
		cmocka_unit_test(line_ends_of_both_kinds_are_the_same),
		cmocka_unit_test(names_in_any_case_are_the_same),
		cmocka_unit_test(every_beginning_of_a_head_is_read_within_its_bounds),
		cmocka_unit_test(text_without_a_status_line_is_refused_and_changes_nothing),
		cmocka_unit_test(overlong_and_broken_values_are_no_hint),
	};

	return run_group(tests);
}
