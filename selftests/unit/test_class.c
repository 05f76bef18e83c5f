// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The tables of what a result means: each row of the manual page is what the functions say. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "kretry.h"

#define PAGE		"../../userspace/man/kretry_class.3"
#define CODES		1000
#define ERRNOS		134
#define FIELDS		5

/* What a table of the page says for each code; 0 where it has no row. */
struct table {
	u8	before[CODES], after[CODES];
	u8	hundreds[10];
	int	rows;
};

static u8 event_named(const char *text)
{
	unsigned int i;

	for (i = KRETRY_EVENT_OK; i <= KRETRY_EVENT_PERMANENT; i++)
		if (!strcasecmp(text, kretry_event_name(i)))
			return (u8)i;
	fail_msg("no event: %s", text);
	return 0;
}

static int errno_named(const char *text)
{
	int i;

	for (i = 1; i < ERRNOS; i++)
		if (strerrorname_np(i) && !strcmp(strerrorname_np(i), text))
			return i;
	fail_msg("no errno: %s", text);
	return 0;
}

/* "a Ta b Ta c", in place */
static int split(char *text, char **fields)
{
	char *end;
	int count = 0;

	text[strcspn(text, "\n")] = '\0';
	while (text && count < FIELDS) {
		fields[count++] = text;
		end = strstr(text, " Ta ");
		if (end)
			*end = '\0';
		text = end ? end + 4 : NULL;
	}
	return count;
}

static void set(struct table *t, int code, u8 before, u8 after)
{
	assert_in_range(code, 0, CODES - 1);
	assert_int_equal(t->before[code], 0);
	t->before[code] = before;
	t->after[code] = after;
}

/* The first field is an errno's name, a code, a hundred of them or a range. */
static void take_row(struct table *t, char **fields, int count)
{
	u8 before = event_named(fields[count - (strncmp(fields[0], "Er ", 3) ? 2 : 3)]);
	u8 after = event_named(fields[count - 2]);
	char *end;
	int code, last;

	assert_true(strlen(fields[count - 1]) > 3);
	t->rows++;
	if (!strncmp(fields[0], "Er ", 3)) {
		set(t, errno_named(fields[0] + 3), before, after);
		return;
	}
	code = (int)strtol(fields[0], &end, 10);
	if (!strcmp(end, "xx")) {
		t->hundreds[code] = before;
		return;
	}
	last = strncmp(end, "\\(en", 4) ? code : atoi(end + 4);
	assert_true(end > fields[0] && (last > code || !*end));
	for (; code <= last; code++)
		set(t, code, before, after);
}

static struct table *read_table(const char *section)
{
	struct table *t = calloc(1, sizeof(*t));
	FILE *file = fopen(PAGE, "r");
	char line[512], *fields[FIELDS];
	bool inside = false;
	int count;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, ".S", 2))
			inside = !strncmp(line, ".Ss ", 4) &&
				 !strncmp(line + 4, section, strlen(section));
		if (!inside || strncmp(line, ".It ", 4) || !strstr(line, " Ta "))
			continue;
		count = split(line + 4, fields);
		assert_in_range(count, 3, 4);
		take_row(t, fields, count);
	}
	fclose(file);
	assert_true(t->rows);
	return t;
}

/* Rows for hundreds, and for nothing else, fill what has no row of its own. */
static u8 told(const struct table *t, int code)
{
	if (code < 0 || code >= CODES)
		return KRETRY_EVENT_UNKNOWN;
	if (t->before[code])
		return t->before[code];
	return t->hundreds[code / 100] ? t->hundreds[code / 100] : KRETRY_EVENT_UNKNOWN;
}

static void compare(const char *section, enum kretry_event (*class_of)(int code), int last)
{
	struct table *t = read_table(section);
	int code;

	for (code = -CODES; code < 2 * CODES; code++)
		if (class_of(code) != told(t, code))
			fail_msg("%s %d: %s, on the page %s", section, code,
				 kretry_event_name(class_of(code)),
				 kretry_event_name(told(t, code)));
	/* Each has a row, and there is none for more. */
	for (code = 0; code < CODES && last; code++)
		assert_int_equal(!!t->before[code], code <= last);
	assert_int_equal(class_of(INT32_MIN), KRETRY_EVENT_UNKNOWN);
	assert_int_equal(class_of(INT32_MAX), KRETRY_EVENT_UNKNOWN);
	free(t);
}

static void http_is_as_the_page_says(void **state)
{
	(void)state;
	compare("HTTP", kretry_class_http, 0);
}

static void grpc_is_as_the_page_says(void **state)
{
	(void)state;
	compare("gRPC", kretry_class_grpc, 16);
}

static void curl_is_as_the_page_says(void **state)
{
	(void)state;
	compare("libcurl", kretry_class_curl, 101);
}

static void exit_is_as_the_page_says(void **state)
{
	(void)state;
	compare("Exit", kretry_class_exit, 0);
}

/* Of either sign, and complete: every errno that the C library has a name for. */
static void errno_is_as_the_page_says_and_all_are_there(void **state)
{
	struct table *t = read_table("Error numbers");
	int error;

	(void)state;
	for (error = 1; error < ERRNOS; error++) {
		if (!strerrorname_np(error))
			continue;
		if (!t->before[error])
			fail_msg("%s is not on the page", strerrorname_np(error));
		assert_int_equal(kretry_class_errno(error, 0), t->before[error]);
		assert_int_equal(kretry_class_errno(-error, 0), t->before[error]);
		assert_int_equal(kretry_class_errno(error, 1), t->after[error]);
		assert_int_equal(kretry_class_errno(-error, -1), t->after[error]);
	}
	for (error = 0; error <= 1; error++) {
		assert_int_equal(kretry_class_errno(0, error), KRETRY_EVENT_OK);
		assert_int_equal(kretry_class_errno(ERRNOS, error), KRETRY_EVENT_UNKNOWN);
		assert_int_equal(kretry_class_errno(-ERRNOS, error), KRETRY_EVENT_UNKNOWN);
		assert_int_equal(kretry_class_errno(INT32_MIN, error), KRETRY_EVENT_UNKNOWN);
		assert_int_equal(kretry_class_errno(INT32_MAX, error), KRETRY_EVENT_UNKNOWN);
	}
	free(t);
}

/* Once sent, nothing that could have been done is taken for not done. */
static void errno_after_sending_is_never_safer(void **state)
{
	static const int refused[] = { ECONNREFUSED, EADDRINUSE, EADDRNOTAVAIL, EBUSY, ETXTBSY,
				       EDEADLK, ENOLCK, EUSERS, ESTALE };
	unsigned int i, found = 0;
	int error;

	(void)state;
	for (error = 1; error < ERRNOS; error++) {
		if (kretry_class_errno(error, 1) == kretry_class_errno(error, 0)) {
			found += kretry_class_errno(error, 0) == KRETRY_EVENT_TRANSIENT;
			continue;
		}
		assert_int_equal(kretry_class_errno(error, 0), KRETRY_EVENT_TRANSIENT);
		assert_int_equal(kretry_class_errno(error, 1), KRETRY_EVENT_UNKNOWN);
	}
	for (i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(kretry_class_errno(refused[i], 1), KRETRY_EVENT_TRANSIENT);
	assert_int_equal(found, ARRAY_SIZE(refused));
}

/* Not from the page: what the classes are for. */
static void statuses_that_matter_are_in_their_class(void **state)
{
	static const struct {
		int	status;
		u8	event;
	} cases[] = {
		{ 101, KRETRY_EVENT_OK }, { 200, KRETRY_EVENT_OK }, { 304, KRETRY_EVENT_OK },
		{ 100, KRETRY_EVENT_UNKNOWN }, { 404, KRETRY_EVENT_PERMANENT },
		{ 408, KRETRY_EVENT_TRANSIENT }, { 421, KRETRY_EVENT_TRANSIENT },
		{ 425, KRETRY_EVENT_TRANSIENT }, { 429, KRETRY_EVENT_THROTTLED },
		{ 500, KRETRY_EVENT_UNKNOWN }, { 501, KRETRY_EVENT_PERMANENT },
		{ 502, KRETRY_EVENT_UNKNOWN }, { 503, KRETRY_EVENT_TRANSIENT },
		{ 504, KRETRY_EVENT_UNKNOWN }, { 505, KRETRY_EVENT_PERMANENT },
		{ 599, KRETRY_EVENT_UNKNOWN }, { 600, KRETRY_EVENT_UNKNOWN },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(kretry_class_http(cases[i].status), cases[i].event);
	assert_int_equal(kretry_class_grpc(1), KRETRY_EVENT_CANCELLED);
	assert_int_equal(kretry_class_grpc(14), KRETRY_EVENT_TRANSIENT);
	assert_int_equal(kretry_class_curl(7), KRETRY_EVENT_TRANSIENT);
	assert_int_equal(kretry_class_curl(28), KRETRY_EVENT_UNKNOWN);
	assert_int_equal(kretry_class_curl(52), KRETRY_EVENT_UNKNOWN);
	assert_int_equal(kretry_class_exit(1), KRETRY_EVENT_UNKNOWN);
	assert_int_equal(kretry_class_exit(75), KRETRY_EVENT_TRANSIENT);
	assert_int_equal(kretry_class_exit(127), KRETRY_EVENT_PERMANENT);
	assert_int_equal(kretry_class_exit(137), KRETRY_EVENT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errno_is_as_the_page_says_and_all_are_there),
		cmocka_unit_test(errno_after_sending_is_never_safer),
		cmocka_unit_test(http_is_as_the_page_says),
		cmocka_unit_test(grpc_is_as_the_page_says),
		cmocka_unit_test(curl_is_as_the_page_says),
		cmocka_unit_test(exit_is_as_the_page_says),
		cmocka_unit_test(statuses_that_matter_are_in_their_class),
	};

	return run_group(tests);
}
