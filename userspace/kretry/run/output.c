// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Output that is held back until it is known which attempt was the last. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "run.h"

static const enum event events[2] = { ON_STDOUT, ON_STDERR };

static bool open_one(struct run *r, int i, int *out)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0 || fcntl(pipes[0], F_SETFL, O_NONBLOCK) < 0) {
		complain(r, "pipe: %m");
		return false;
	}
	r->output.from[i] = pipes[0];
	watch(r, events[i], pipes[0], POLLIN);
	*out = pipes[1];
	return true;
}

bool output_begin(struct run *r, int out[2])
{
	struct output *o = &r->output;
	int i;

	if (r->set.output_mode == OUTPUT_PASS)
		return true;
	o->error = 0;
	for (i = 0; i < 2; i++)
		spool_clear(&o->kept[i]);
	if (!o->chunk)
		o->chunk = malloc(CHUNK);
	if (!o->chunk) {
		complain(r, "%s", strerror(ENOMEM));
		return false;
	}
	return open_one(r, 0, &out[0]) && open_one(r, 1, &out[1]);
}

static void close_one(struct run *r, int i)
{
	close(r->output.from[i]);
	r->output.from[i] = -1;
	unwatch(r, events[i]);
}

/* Up to @size. The command goes on where there is no room: what it does matters more. */
static size_t take(struct run *r, int i, size_t size)
{
	struct output *o = &r->output;
	ssize_t got = read(o->from[i], o->chunk, size < CHUNK ? size : CHUNK);
	int ret = 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0) {
		close_one(r, i);
		return 0;
	}
	if (!o->error)
		ret = spool_append(&o->kept[i], o->chunk, (size_t)got);
	if (ret < 0) {
		o->error = -ret;
		complain(r, "the output cannot be kept in %s: %s", spool_directory(),
			 strerror(-ret));
	}
	return (size_t)got;
}

void output_serve(struct run *r)
{
	int i;

	for (i = 0; i < 2; i++)
		if (is_ready(r, events[i]))
			take(r, i, CHUNK);
}

/* The command has gone, and what it wrote is there; others with the pipe may go on for ever. */
static void drain(struct run *r, int i)
{
	size_t got;
	int left = 0;

	ioctl(r->output.from[i], FIONREAD, &left);
	while (left > 0 && r->output.from[i] >= 0) {
		got = take(r, i, (size_t)left);
		if (!got)
			break;
		left -= (int)got;
	}
	if (r->output.from[i] >= 0)
		close_one(r, i);
}

void output_end(struct run *r)
{
	int i;

	for (i = 0; i < 2; i++)
		if (r->output.from[i] >= 0)
			drain(r, i);
}

static int print_one(struct run *r, int i, const char *name)
{
	const struct spool *kept = &r->output.kept[i];
	uint64_t position = 0;
	ssize_t got, put;

	while (position < kept->size) {
		got = spool_read(kept, position, r->output.chunk, CHUNK);
		if (got <= 0) {
			complain(r, "%s: %s", name, strerror((int)-got));
			return EXIT_OWN;
		}
		put = write(i + 1, r->output.chunk, (size_t)got);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			complain(r, "%s: %m", name);
			return EXIT_OWN;
		}
		position += (uint64_t)put;
	}
	return 0;
}

int output_print(struct run *r, int status, bool ok)
{
	int ret = 0;

	if (r->set.output_mode == OUTPUT_PASS || !r->attempt.number)
		return status;
	if (ok || r->set.output_mode == OUTPUT_LAST)
		ret = print_one(r, 0, "standard output");
	if (print_one(r, 1, "standard error"))
		ret = EXIT_OWN;
	if (r->output.error)
		ret = EXIT_OWN;
	return status ? status : ret;
}
