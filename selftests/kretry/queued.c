// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "queued.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define BATCH	256U

struct kretry_op kt_queue_op(uint32_t policy, uint64_t user_data)
{
	struct kretry_op op = kt_op(policy, KRETRY_EVENT_TRANSIENT);

	op.flags = KRETRY_OP_QUEUE;
	op.user_data = user_data;
	return op;
}

int kt_queue(int fd, uint32_t policy, uint64_t user_data)
{
	struct kretry_op op = kt_queue_op(policy, user_data);
	int ret = kt_step(fd, &op);

	if (ret)
		return ret;
	return op.flags & KRETRY_OP_QUEUED ? 0 : -ECANCELED;
}

unsigned int kt_queue_many(int fd, uint32_t policy, uint64_t first, unsigned int count)
{
	struct kretry_op ops[BATCH];
	unsigned int queued = 0, now, i;

	for (; count; count -= now, first += now) {
		now = count < BATCH ? count : BATCH;
		for (i = 0; i < now; i++)
			ops[i] = kt_queue_op(policy, first + i);
		if (kt_batch(fd, ops, now) != (int)now)
			return queued;
		for (i = 0; i < now; i++)
			queued += ops[i].verdict == KRETRY_RETRY &&
				  ops[i].flags & KRETRY_OP_QUEUED;
	}
	return queued;
}

int kt_take(int fd, struct kretry_op *ops, unsigned int count)
{
	size_t size = count * sizeof(*ops);
	ssize_t got;

	memset(ops, POISON, size);
	got = read(fd, ops, size);
	if (got < 0)
		return -errno;
	if (got == 0 || got % sizeof(*ops) || !kt_all((char *)ops + got, size - got, POISON))
		return -EIO;
	return (int)(got / sizeof(*ops));
}

int kt_take_one(int fd, struct kretry_op *op)
{
	struct kretry_op two[2];
	int got = kt_take(fd, two, 2);

	*op = two[0];
	return got < 0 ? got : got == 1 ? 0 : -EIO;
}

int kt_cancel(int fd, uint64_t user_data, struct kretry_op *op)
{
	struct kretry_cancel cancel = { .size = sizeof(cancel), .user_data = user_data };
	int ret;

	memset(&cancel.op, POISON, sizeof(cancel.op));
	ret = kt_ioctl(fd, KRETRY_IOC_CANCEL, &cancel);
	*op = cancel.op;
	if (ret && !kt_all(op, sizeof(*op), POISON))
		return -EIO;
	return ret;
}

int kt_poll(int fd, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN | POLLPRI | POLLOUT };
	int ret = poll(&pollfd, 1, timeout_ms);

	return ret < 0 ? -errno : ret ? pollfd.revents : 0;
}

void kt_nonblock(int fd, bool nonblock)
{
	fcntl(fd, F_SETFL, nonblock ? O_NONBLOCK : 0);
}

int kt_waiting(int fd, uint32_t policy)
{
	struct kretry_stat stat = { .size = sizeof(stat), .policy = policy };
	int ret = kt_ioctl(fd, KRETRY_IOC_STAT, &stat);

	return ret ? ret : (int)stat.queued;
}
