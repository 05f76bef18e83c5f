// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the head of an HTTP response says about when to come back. */

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "hint.h"

/* A longer value is none that is known here. */
#define VALUE_SIZE	512

struct text {
	const char	*at, *end;
};

struct header {
	const char	*name;
	size_t		name_len;
	/* Unfolded; "" if it is too long or has a NUL. */
	char		value[VALUE_SIZE];
};

/* What has been read of one head. */
struct reading {
	char		date[VALUE_SIZE];
	uint64_t	retry_after, reset;	/* the longest of each */
	uint64_t	limit_reset;	/* of those of RateLimit whose quota is used up */
	uint64_t	limit_any;
	bool		has_retry_after, has_reset, has_limit_reset, has_limit_any, used_up;
};

static struct text next_line(struct text *rest)
{
	const char *end = rest->at == rest->end ? NULL :
			  memchr(rest->at, '\n', (size_t)(rest->end - rest->at));
	struct text line = { rest->at, end ? end : rest->end };

	rest->at = end ? end + 1 : rest->end;
	if (line.end > line.at && line.end[-1] == '\r')
		line.end--;
	return line;
}

/* "HTTP/1.1 503 Service Unavailable", of HTTP/2 and 3 without a phrase; 0 if it is none */
static int status_of(struct text line)
{
	const char *at = line.at;
	int status;

	if (line.end - at < 9 || memcmp(at, "HTTP/", 5) || !is_digit(at[5]))
		return 0;
	for (at += 6; at < line.end && (is_digit(*at) || *at == '.'); at++)
		;
	if (line.end - at < 4 || *at != ' ' || !is_digit(at[1]) || !is_digit(at[2]) ||
	    !is_digit(at[3]) || (line.end - at > 4 && at[4] != ' '))
		return 0;
	status = (at[1] - '0') * 100 + (at[2] - '0') * 10 + at[3] - '0';
	return status >= 100 ? status : 0;
}

static void append_value(struct header *header, size_t *len, struct text line)
{
	size_t more = (size_t)(line.end - line.at);

	if (*len + more + 2 > VALUE_SIZE || memchr(line.at, '\0', more)) {
		*len = VALUE_SIZE;
		return;
	}
	if (*len)
		header->value[(*len)++] = ' ';
	memcpy(header->value + *len, line.at, more);
	*len += more;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct text trimmed(struct text line)
{
	while (line.at < line.end && is_blank(*line.at))
		line.at++;
	while (line.at < line.end && is_blank(line.end[-1]))
		line.end--;
	return line;
}

/* False at the empty line, which is then read, or at the end. A line that is none has no name. */
static bool next_header(struct text *rest, struct header *header)
{
	struct text line = next_line(rest);
	const char *colon;
	size_t len = 0;

	if (line.at == line.end)
		return false;
	colon = memchr(line.at, ':', (size_t)(line.end - line.at));
	header->name = line.at;
	header->name_len = colon ? (size_t)(colon - line.at) : 0;
	line.at = colon ? colon + 1 : line.end;
	append_value(header, &len, trimmed(line));
	/* Folded: a line that begins with a blank goes on with the one before. */
	while (rest->at < rest->end && is_blank(*rest->at))
		append_value(header, &len, trimmed(next_line(rest)));
	header->value[len < VALUE_SIZE ? len : 0] = '\0';
	return true;
}

static bool is_named(const struct header *header, const char *name)
{
	return header->name_len == strlen(name) &&
	       !strncasecmp(header->name, name, header->name_len);
}

static bool is_any_of(const struct header *header, const char *a, const char *b, const char *c)
{
	return is_named(header, a) || is_named(header, b) || is_named(header, c);
}

static void take_longest(uint64_t *kept, bool *has, uint64_t hint)
{
	if (!*has || hint > *kept)
		*kept = hint;
	*has = true;
}

/* Of RateLimit, in the drafts: "x";r=0;t=30; in older ones limit=10, remaining=0, reset=30 */
struct quota {
	uint64_t	remaining, reset;
	bool	has_remaining, has_reset;
};

static void end_quota(struct reading *r, struct quota *q)
{
	if (q->has_reset) {
		take_longest(&r->limit_any, &r->has_limit_any, q->reset);
		if (q->has_remaining && !q->remaining)
			take_longest(&r->limit_reset, &r->has_limit_reset, q->reset);
	}
	*q = (struct quota) { 0 };
}

static void take_parameter(struct quota *q, char *text)
{
	char *value = strchr(text, '=');

	if (!value)
		return;
	*value++ = '\0';
	if (!strcasecmp(text, "r") || !strcasecmp(text, "remaining"))
		q->has_remaining = !parse_seconds(value, &q->remaining);
	else if (!strcasecmp(text, "t") || !strcasecmp(text, "reset"))
		q->has_reset = !parse_seconds(value, &q->reset);
}

static void take_ratelimit(struct reading *r, char *value)
{
	struct quota quota = { 0 };
	char *save, *item;

	for (item = strtok_r(value, ",; \t", &save); item; item = strtok_r(NULL, ",; \t", &save)) {
		if (*item == '"')
			end_quota(r, &quota);
		else
			take_parameter(&quota, item);
	}
	end_quota(r, &quota);
}

/* -------- a head -------- */

static void take_header(struct reading *r, struct header *header)
{
	const char *value = header->value;
	uint64_t ns;

	if (is_named(header, "retry-after")) {
		if (!kretry_parse_retry_after(value, r->date, &ns))
			take_longest(&r->retry_after, &r->has_retry_after, ns);
	} else if (is_any_of(header, "ratelimit-reset", "x-ratelimit-reset",
			     "x-rate-limit-reset")) {
		if (!kretry_parse_ratelimit_reset(value, r->date, &ns))
			take_longest(&r->reset, &r->has_reset, ns);
	} else if (is_any_of(header, "ratelimit-remaining", "x-ratelimit-remaining",
			     "x-rate-limit-remaining")) {
		r->used_up |= !parse_seconds(value, &ns) && !ns;
	} else if (is_named(header, "ratelimit")) {
		take_ratelimit(r, header->value);
	}
}

/* The word for it goes before the others; and of several equal ones the longest is not too soon. */
static void judge(const struct reading *r, struct kretry_response *response)
{
	bool limited = response->status == 429 || response->status == 503;
	bool has = true;

	if (r->has_retry_after)
		response->hint_ns = r->retry_after;
	else if (r->has_reset && (limited || r->used_up))
		response->hint_ns = r->reset;
	else if (r->has_limit_reset)
		response->hint_ns = r->limit_reset;
	else if (r->has_limit_any && limited)
		response->hint_ns = r->limit_any;
	else
		has = false;
	response->flags = has ? KRETRY_OP_HINT : 0;
}

/* Twice, as Date may come after what is relative to it. Past the empty line afterwards. */
static void read_head(struct text *rest, struct kretry_response *response)
{
	struct text again = *rest;
	struct reading r = { 0 };
	struct header header;

	while (next_header(&again, &header))
		if (is_named(&header, "date") && !*r.date)
			memcpy(r.date, header.value, sizeof(r.date));
	while (next_header(rest, &header))
		take_header(&r, &header);
	response->hint_ns = 0;
	judge(&r, response);
}

int kretry_parse_response(const char *head, size_t length, struct kretry_response *response)
{
	struct text rest, next = { head, head };
	int status;

	if (!length)
		return -ENOENT;
	next.end += length;
	status = status_of(next_line(&next));
	if (!status)
		return -ENOENT;
	while (status) {
		rest = next;
		response->status = status;
		read_head(&rest, response);
		next = rest;
		status = status_of(next_line(&next));
	}
	return 0;
}
