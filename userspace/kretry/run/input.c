// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The command's input. That from a pipe is passed on as the command takes it, and kept, so that the
 * next attempt gets it again.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run.h"

/* -------- what it is -------- */

static int kind_of(struct input *in)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0)
		return INPUT_INHERIT;
	if (S_ISREG(st.st_mode)) {
		in->start = lseek(STDIN_FILENO, 0, SEEK_CUR);
		return in->start < 0 ? INPUT_INHERIT : INPUT_FILE;
	}
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return INPUT_PUMP;
	if (S_ISCHR(st.st_mode) && st.st_rdev != makedev(1, 3) && !isatty(STDIN_FILENO) &&
	    (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) != O_WRONLY)
		return fcntl(STDIN_FILENO, F_GETFL) & O_PATH ? INPUT_INHERIT : INPUT_PUMP;
	return INPUT_INHERIT;
}

bool input_init(struct run *r)
{
	struct input *in = &r->input;

	*in = (struct input) { .to = -1 };
	spool_init(&in->kept);
	if (r->set.stdin_mode == STDIN_NULL)
		in->kind = INPUT_NULL;
	else if (r->set.stdin_mode == STDIN_REPLAY && r->limit != 1)
		in->kind = kind_of(in);
	if (in->kind != INPUT_PUMP)
		return true;
	in->chunk = malloc(CHUNK);
	if (!in->chunk)
		fail("%s", strerror(ENOMEM));
	return in->chunk;
}

/* -------- an attempt's -------- */

/* A descriptor of its own: where a caller goes on reading, the place is still the caller's. */
static int open_again(const struct input *in)
{
	int fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && lseek(fd, in->start, SEEK_SET) == in->start)
		return fd;
	if (fd >= 0)
		close(fd);
	lseek(STDIN_FILENO, in->start, SEEK_SET);
	return -1;
}

static int open_null(struct run *r)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	complain(r, "/dev/null: %m");
	return -2;
}

static int open_pipe(struct run *r)
{
	struct input *in = &r->input;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0 || fcntl(pipes[1], F_SETFL, O_NONBLOCK) < 0) {
		complain(r, "pipe: %m");
		return -2;
	}
	in->to = pipes[1];
	in->position = 0;
	in->from = 0;
	in->until = 0;
	in->room = false;
	return pipes[0];
}

/* For the child to put at 0, -1 for the input as it is, -2 if it cannot be had, which is told. */
int input_begin(struct run *r)
{
	switch (r->input.kind) {
	case INPUT_NULL:
		return open_null(r);
	case INPUT_FILE:
		return open_again(&r->input);
	case INPUT_PUMP:
		return open_pipe(r);
	default:
		return -1;
	}
}

static void close_pipe(struct run *r)
{
	if (r->input.to >= 0)
		close(r->input.to);
	r->input.to = -1;
	unwatch(r, ON_STDIN);
	unwatch(r, ON_SOURCE);
}

void input_end(struct run *r)
{
	close_pipe(r);
}

/* -------- on its way -------- */

/* From what is kept; where that ends only the source has more. */
static void refill(struct run *r)
{
	struct input *in = &r->input;
	ssize_t got;

	if (in->from < in->until || in->position >= in->kept.size)
		return;
	got = spool_read(&in->kept, in->position, in->chunk, CHUNK);
	if (got <= 0) {
		complain(r, "the input that was kept: %s", strerror((int)-got));
		in->lost = true;
		close_pipe(r);
		return;
	}
	in->position += (uint64_t)got;
	in->from = 0;
	in->until = (size_t)got;
}

/* Nothing is taken from the source before there is room for it in the command's pipe. */
void input_arrange(struct run *r)
{
	struct input *in = &r->input;
	bool wants;

	if (in->to < 0)
		return;
	refill(r);
	if (in->to >= 0 && in->from == in->until && in->ended)
		close_pipe(r);
	if (in->to < 0)
		return;
	wants = in->from == in->until && in->room;
	watch(r, ON_STDIN, in->to, wants ? 0 : POLLOUT);
	watch(r, ON_SOURCE, wants ? STDIN_FILENO : -1, POLLIN);
}

/* As much as the command's pipe has room for, and at least what it is sure to take. */
static size_t room_in_pipe(int fd)
{
	int size = fcntl(fd, F_GETPIPE_SZ), used = 0;

	if (size < 0 || ioctl(fd, FIONREAD, &used) < 0 || size - used < 4096)
		return 4096;
	return size - used < (int)CHUNK ? (size_t)(size - used) : CHUNK;
}

/* The last attempt needs no copy. Where there is no room for one, this attempt is the last. */
static void keep(struct run *r, size_t size)
{
	struct input *in = &r->input;
	int ret;

	if (in->lost || r->attempt.number == r->limit)
		return;
	ret = spool_append(&in->kept, in->chunk, size);
	if (ret < 0) {
		complain(r, "the input cannot be kept in %s: %s: no further attempt",
			 spool_directory(), strerror(-ret));
		spool_clear(&in->kept);
		in->lost = true;
	}
	in->position = in->kept.size;
}

static void take(struct run *r)
{
	struct input *in = &r->input;
	ssize_t got;

	got = read(STDIN_FILENO, in->chunk, room_in_pipe(in->to));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got < 0)
		complain(r, "standard input: %m");
	if (got <= 0) {
		in->ended = true;
		return;
	}
	in->from = 0;
	in->until = (size_t)got;
	keep(r, (size_t)got);
}

static void give(struct run *r)
{
	struct input *in = &r->input;
	ssize_t put;

	if (in->from == in->until)
		return;
	put = write(in->to, in->chunk + in->from, in->until - in->from);
	if (put > 0)
		in->from += (size_t)put;
	/* It is full now, or may be: ask before taking more. */
	in->room = false;
	if (put < 0 && errno != EAGAIN && errno != EINTR)
		close_pipe(r);
}

void input_serve(struct run *r)
{
	struct input *in = &r->input;

	if (in->to < 0)
		return;
	if (is_ready(r, ON_STDIN)) {
		/* Nobody reads it any more. */
		if (r->polls[ON_STDIN].revents & (POLLERR | POLLNVAL)) {
			close_pipe(r);
			return;
		}
		in->room = true;
	}
	if (is_ready(r, ON_SOURCE))
		take(r);
	if (in->room)
		give(r);
}
