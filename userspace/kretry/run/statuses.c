// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Exit statuses: lists of them, and the class of failure that one means. */

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "run.h"

/* -------- lists -------- */

/* "SEGV" or "SIGSEGV", in either case; 0 if there is none. */
static int signal_number(const char *name)
{
	const char *known;
	int number;

	if (!strncasecmp(name, "SIG", 3))
		name += 3;
	for (number = 1; number < SIGRTMIN; number++) {
		known = sigabbrev_np(number);
		if (known && !strcasecmp(name, known))
			return number;
	}
	return 0;
}

static bool parse_status(const char *text, unsigned int *status)
{
	char *end;

	if (*text < '0' || *text > '9') {
		*status = (unsigned int)signal_number(text);
		*status += *status ? EXIT_SIGNAL : 0;
		return *status;
	}
	*status = (unsigned int)strtoul(text, &end, 10);
	return !*end && strlen(text) <= 3 && *status <= 255;
}

/* "7" or "4-7". */
static const char *add_range(char *text, struct statuses *statuses)
{
	static const char wrong[] = "not a list of exit statuses: write 1,4-7,SIGSEGV";
	char *dash = strchr(text, '-');
	unsigned int first, last;

	if (dash)
		*dash = '\0';
	if (!parse_status(text, &first) || !parse_status(dash ? dash + 1 : text, &last) ||
	    first > last)
		return wrong;
	if (!first)
		return "0 is success, and never retried";
	while (first <= last)
		statuses->has[first++] = true;
	return NULL;
}

const char *statuses_parse(const char *text, struct statuses *statuses)
{
	const char *error = NULL;
	char one[32];
	size_t len;

	memset(statuses, 0, sizeof(*statuses));
	statuses->given = true;
	do {
		len = strcspn(text, ",");
		snprintf(one, sizeof(one), "%.*s", (int)len, text);
		error = add_range(one, statuses);
		text += len;
	} while (!error && *text++);
	return error;
}

/* -------- classes -------- */

/* As a shell has it. */
int exit_code(int status)
{
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static enum kretry_event table_class(const struct run *r, int code)
{
	if (r->set.codes == CODES_CURL && !WIFSIGNALED(r->attempt.status))
		return kretry_class_curl(code);
	return kretry_class_exit(code);
}

/*
 * What is named in a list has the last word, and the server's status one before the command's, if
 * it is of a failure: a response may be good and its body still be cut off.
 */
enum kretry_event classify(const struct run *r)
{
	const struct settings *set = &r->set;
	int code = r->attempt.timed_out ? EXIT_TIMEOUT : exit_code(r->attempt.status);
	enum kretry_event class;

	if (code && set->no_retry_on.has[code])
		return KRETRY_EVENT_PERMANENT;
	if (code && set->retry_on.has[code])
		return KRETRY_EVENT_TRANSIENT;
	if (r->attempt.timed_out)
		return KRETRY_EVENT_UNKNOWN;
	if (r->hint.http) {
		class = kretry_class_http(r->hint.http);
		if (class != KRETRY_EVENT_OK)
			return class;
	}
	if (!code)
		return KRETRY_EVENT_OK;
	return set->retry_on.given ? KRETRY_EVENT_PERMANENT : table_class(r, code);
}
