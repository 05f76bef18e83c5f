// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int kt_ring(struct io_uring *ring, unsigned int entries, unsigned int flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1 };

	return io_uring_queue_init_params(entries, ring, &params);
}

bool kt_ring_waits(int fd)
{
	struct kretry_info info;

	return !kt_info(fd, &info) && info.features & KRETRY_FEATURE_URING_WAIT;
}

/* -------- submissions -------- */

/* An SQPOLL thread may be done with a submission before it has given its place back. */
static struct io_uring_sqe *get(struct io_uring *ring)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(ring)))
		if (!(ring->flags & IORING_SETUP_SQPOLL) || io_uring_sqring_wait(ring) < 0)
			abort();
	return sqe;
}

struct io_uring_sqe *kt_put(struct io_uring *ring, int fd, unsigned long command,
			    const struct kretry_uring *payload)
{
	struct io_uring_sqe *sqe = get(ring);

	io_uring_prep_nop(sqe);
	sqe->user_data = 0;
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	/* cmd_op and cmd[] of newer headers. */
	sqe->off = command;
	memcpy((char *)sqe + 48, payload, sizeof(*payload));
	return sqe;
}

struct io_uring_sqe *kt_put_step(struct io_uring *ring, int fd, struct kretry_op *ops,
				 unsigned int count)
{
	struct kretry_uring payload = {
		.ops = (uintptr_t)ops, .count = count, .op_size = sizeof(*ops),
	};

	return kt_put(ring, fd, KRETRY_IOC_STEP, &payload);
}

struct io_uring_sqe *kt_put_wait(struct io_uring *ring, int fd, struct kretry_op *op)
{
	struct kretry_uring payload = {
		.ops = (uintptr_t)op, .count = 1, .op_size = sizeof(*op),
	};
	struct io_uring_sqe *sqe = kt_put(ring, fd, KRETRY_IOC_WAIT, &payload);

	sqe->user_data = op->user_data;
	return sqe;
}

struct io_uring_sqe *kt_put_cancel(struct io_uring *ring, int fd, struct kretry_cancel *cancel)
{
	struct kretry_uring payload = {
		.ops = (uintptr_t)cancel, .count = 1, .op_size = sizeof(*cancel),
	};

	return kt_put(ring, fd, KRETRY_IOC_CANCEL, &payload);
}

struct io_uring_sqe *kt_put_nop(struct io_uring *ring, uint64_t user_data)
{
	struct io_uring_sqe *sqe = get(ring);

	io_uring_prep_nop(sqe);
	sqe->user_data = user_data;
	return sqe;
}

/* -------- completions -------- */

static int take(struct io_uring *ring, struct io_uring_cqe *cqe, uint64_t *user_data)
{
	int res = cqe->res;

	if (user_data)
		*user_data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

int kt_next(struct io_uring *ring, uint64_t *user_data)
{
	struct io_uring_cqe *cqe;
	int ret;

	if (io_uring_sq_ready(ring)) {
		ret = io_uring_submit(ring);
		if (ret < 0)
			return ret;
	}
	do {
		ret = io_uring_wait_cqe(ring, &cqe);
	} while (ret == -EINTR);
	return ret ? ret : take(ring, cqe, user_data);
}

int kt_look(struct io_uring *ring, uint64_t *user_data)
{
	struct io_uring_cqe *cqe;

	io_uring_get_events(ring);
	if (io_uring_peek_cqe(ring, &cqe))
		return KT_NOTHING;
	return take(ring, cqe, user_data);
}

int kt_result(struct io_uring *ring, uint64_t user_data)
{
	uint64_t got;
	int ret = kt_next(ring, &got);

	if (got == user_data)
		return ret;
	fprintf(stderr, "# completion of %#llx, not of %#llx\n", (unsigned long long)got,
		(unsigned long long)user_data);
	return KT_NOTHING;
}

/* -------- commands -------- */

int kt_wait_for(struct io_uring *ring, int fd, struct kretry_op *op)
{
	kt_put_wait(ring, fd, op);
	return kt_result(ring, op->user_data);
}

int kt_cancel(int fd, uint64_t user_data, struct kretry_cancel *cancel)
{
	memset(cancel, POISON, sizeof(*cancel));
	cancel->size = sizeof(*cancel);
	cancel->flags = 0;
	cancel->user_data = user_data;
	return kt_ioctl(fd, KRETRY_IOC_CANCEL, cancel);
}

struct kretry_op kt_failed(uint32_t policy, uint64_t key, uint64_t user_data)
{
	struct kretry_op op = kt_op(policy, KRETRY_EVENT_TRANSIENT);

	op.key = key;
	op.user_data = user_data;
	return op;
}
