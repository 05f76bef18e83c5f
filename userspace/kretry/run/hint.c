// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Where the command leaves what the server has asked for: a file, or a pipe it inherits. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

/* More than any head of a response has. */
#define HINT_MAX	CHUNK

static bool begin_pipe(struct run *r, int *fd)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0 || fcntl(pipes[0], F_SETFL, O_NONBLOCK) < 0) {
		complain(r, "pipe: %m");
		return false;
	}
	r->hint.from = pipes[0];
	watch(r, ON_HINT, pipes[0], POLLIN);
	*fd = pipes[1];
	return true;
}

bool hint_begin(struct run *r, int *fd)
{
	struct hint *h = &r->hint;

	h->given = false;
	h->http = 0;
	h->length = 0;
	if (!r->set.hint_file && r->set.hint_fd < 0)
		return true;
	if (!h->text)
		h->text = malloc(HINT_MAX + 1);
	if (!h->text) {
		complain(r, "%s", strerror(ENOMEM));
		return false;
	}
	if (r->set.hint_fd >= 0)
		return begin_pipe(r, fd);
	if (stat(r->set.hint_file, &h->before) < 0)
		h->before.st_nlink = 0;
	return true;
}

/* What is too much is read all the same, as the command would wait otherwise. */
void hint_serve(struct run *r)
{
	struct hint *h = &r->hint;
	char rest[4096];
	bool full = h->length == HINT_MAX;
	ssize_t got;

	if (!is_ready(r, ON_HINT))
		return;
	got = read(h->from, full ? rest : h->text + h->length,
		   full ? sizeof(rest) : HINT_MAX - h->length);
	if (got > 0 && !full)
		h->length += (size_t)got;
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		close(h->from);
		h->from = -1;
		unwatch(r, ON_HINT);
	}
}

void hint_end(struct run *r)
{
	struct hint *h = &r->hint;
	ssize_t got;

	if (h->from < 0)
		return;
	while (h->length < HINT_MAX) {
		got = read(h->from, h->text + h->length, HINT_MAX - h->length);
		if (got <= 0)
			break;
		h->length += (size_t)got;
	}
	close(h->from);
	h->from = -1;
	unwatch(r, ON_HINT);
}

/* -------- what it says -------- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_changed(const struct stat *before, const struct stat *now)
{
	return !before->st_nlink || before->st_dev != now->st_dev ||
	       before->st_ino != now->st_ino || before->st_size != now->st_size ||
	       !same_time(&before->st_mtim, &now->st_mtim) ||
	       !same_time(&before->st_ctim, &now->st_ctim);
}

/* One left from before says nothing of this attempt. */
static void read_file(struct run *r)
{
	struct hint *h = &r->hint;
	struct stat now;
	ssize_t got;
	int fd = open(r->set.hint_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		note(r, "%s: %m", r->set.hint_file);
		return;
	}
	if (fstat(fd, &now) < 0 || !S_ISREG(now.st_mode)) {
		note(r, "%s is no regular file", r->set.hint_file);
	} else if (is_changed(&h->before, &now)) {
		got = read(fd, h->text, HINT_MAX);
		h->length = got > 0 ? (size_t)got : 0;
	}
	close(fd);
}

/* A date, seconds, or a duration as in the options, alone on the first line. */
static bool parse_line(struct hint *h)
{
	size_t len = strcspn(h->text, "\r\n");
	char line[128];
	char *text = line;

	if (len >= sizeof(line))
		return false;
	memcpy(line, h->text, len);
	while (len && strchr(" \t", line[len - 1]))
		len--;
	line[len] = '\0';
	text += strspn(text, " \t");
	if (kretry_parse_retry_after(text, NULL, &h->ns) == 0)
		return true;
	return *text && strcmp(text, "unlimited") && !parse_duration(text, &h->ns);
}

/* A header that is there and gives no hint; what is shown of it is plain ASCII. */
static void tell_garbage(struct run *r)
{
	const char *found = strcasestr(r->hint.text, "\nRetry-After:");
	char value[64];
	size_t i;

	if (!found)
		return;
	found += strlen("\nRetry-After:");
	found += strspn(found, " \t");
	for (i = 0; i < sizeof(value) - 1 && found[i] >= ' ' && found[i] <= '~'; i++)
		value[i] = found[i];
	value[i] = '\0';
	note(r, "Retry-After: %s: neither seconds nor a date: no hint", value);
}

/* After an attempt. */
void hint_read(struct run *r)
{
	struct kretry_response response;
	struct hint *h = &r->hint;

	if (r->set.hint_file)
		read_file(r);
	if (!h->length)
		return;
	h->text[h->length] = '\0';
	if (kretry_parse_response(h->text, h->length, &response) == 0) {
		h->http = response.status;
		h->given = response.flags & KRETRY_OP_HINT;
		h->ns = response.hint_ns;
		if (!h->given)
			tell_garbage(r);
	} else if (strlen(h->text) == h->length && parse_line(h)) {
		h->given = true;
	} else {
		note(r, "neither the head of an HTTP response nor a delay: no hint");
	}
}
