// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* io_uring: without it, or without its commands, the library has other ways to wait. */

#include <errno.h>
#include <string.h>

#include "doctor.h"

#define DISABLED	"/proc/sys/kernel/io_uring_disabled"

static void say_forbidden(struct doctor *d)
{
	char value[16] = "", group[16] = "";

	read_text(DISABLED, value, sizeof(value));
	read_text("/proc/sys/kernel/io_uring_group", group, sizeof(group));
	if (!strcmp(value, "2"))
		found(d, MARK_NOTE, "io_uring", "off: kernel.io_uring_disabled is 2, for all");
	else if (!strcmp(value, "1"))
		found(d, MARK_NOTE, "io_uring",
		      "off for this user: kernel.io_uring_disabled is 1, for all but group %s",
		      group);
	else
		found(d, MARK_NOTE, "io_uring",
		      "forbidden: a seccomp filter, such as a container's, or a policy refuses it");
}

static void say_refused(struct doctor *d, int error)
{
	if (error == EPERM || error == EACCES)
		say_forbidden(d);
	else if (error == ENOSYS)
		found(d, MARK_NOTE, "io_uring",
		      "not in this kernel, or hidden by a seccomp filter");
	else
		found(d, MARK_NOTE, "io_uring", "refused: %s", strerror(error));
}

/* What a command of the device that does nothing completes with. */
static int try_command(struct doctor *d, struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int ret = kretry_prep_step(sqe, d->k, NULL, 0);

	if (ret < 0)
		return ret;
	ret = io_uring_submit_and_wait(ring, 1);
	return ret < 0 ? ret : io_uring_peek_cqe(ring, &cqe) ? -EIO : cqe->res;
}

static void check_commands(struct doctor *d, struct io_uring *ring)
{
	const char *reason = kretry_uring_reason(d->k);
	int ret = try_command(d, ring);

	if (ret < 0)
		found(d, MARK_NOTE, "wait", "io_uring refuses the device's commands: %s",
		      strerror(-ret));
	else
		found(d, *reason ? MARK_NOTE : MARK_OK, "wait", "%s",
		      *reason ? reason : "in the kernel, by io_uring commands of the device");
}

void check_rings(struct doctor *d)
{
	struct io_uring ring;
	int ret = io_uring_queue_init(2, &ring, 0);

	if (ret < 0) {
		say_refused(d, -ret);
		found(d, MARK_NOTE, "wait", "%s", d->status ? "by timers of the process" :
		      "in the queue of the device, which needs no io_uring");
		return;
	}
	found(d, MARK_OK, "io_uring", "available");
	if (!d->status)
		check_commands(d, &ring);
	else
		found(d, MARK_NOTE, "wait", "by io_uring timeouts of the process");
	io_uring_queue_exit(&ring);
}
