// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Without the queue a program asks STEP for a deadline and has io_uring wait for it. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pending.h"

/* What removals answer as. */
#define REMOVAL		(1ULL << 42)

static const struct kretry_backoff trip = {
	.strategy = KRETRY_FIXED, .base_ns = TRIP_NS, .cap_ns = TRIP_NS,
};

static struct __kernel_timespec deadlines[BATCH];
static unsigned int trip_policy;
static int fd;

static void open_timeouts(void)
{
	fd = open("/dev/kretry", O_RDWR | O_CLOEXEC);
	must(fd >= 0, "/dev/kretry");
	trip_policy = create_policy(&trip, NULL, NULL, fd);
}

static void close_timeouts(void)
{
	close(fd);
}

static void prepare_timeout(struct __kernel_timespec *ts, __u64 deadline_ns, __u64 id)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&pending_ring);

	ts->tv_sec = deadline_ns / 1000000000;
	ts->tv_nsec = deadline_ns % 1000000000;
	io_uring_prep_timeout(sqe, ts, 0, IORING_TIMEOUT_ABS);
	sqe->user_data = id;
}

static __u64 arm(__u64 id, __u64 from_ns, __u64 to_ns)
{
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		prepare_timeout(&deadlines[i], deadline_in(from_ns, to_ns), id + i);
	return submit_batch(0);
}

static __u64 arm_later(__u64 id)
{
	return arm(id, LATER_FROM_NS, LATER_TO_NS);
}

static __u64 arm_soon(void)
{
	static __u64 next = SOON_ID;

	next += BATCH;
	return arm(next, SOON_FROM_NS, SOON_TO_NS);
}

/* One answer, which is to be @res. */
static void reap(int res)
{
	struct io_uring_cqe *cqe;

	if (io_uring_peek_cqe(&pending_ring, &cqe))
		errx(1, "a timeout has not completed");
	if (cqe->res != res)
		errx(1, "a timeout completed with %d, not %d", cqe->res, res);
	io_uring_cqe_seen(&pending_ring, cqe);
}

static __u64 reap_expired(void)
{
	__u64 start = now_ns();
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		reap(-ETIME);
	return now_ns() - start;
}

static void prepare_removal(__u64 id)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&pending_ring);

	io_uring_prep_timeout_remove(sqe, id, 0);
	sqe->user_data = REMOVAL;
}

/* What is removed answers too, and either may be first. */
static void reap_removals(unsigned int count)
{
	struct io_uring_cqe *cqe;
	unsigned int i;

	for (i = 0; i < 2 * count; i++) {
		if (io_uring_peek_cqe(&pending_ring, &cqe))
			errx(1, "only %u of %u answers to removals", i, 2 * count);
		if (cqe->res != (cqe->user_data == REMOVAL ? 0 : -ECANCELED))
			errx(1, "a removal ended with %d", cqe->res);
		io_uring_cqe_seen(&pending_ring, cqe);
	}
}

static __u64 remove_each(__u64 id)
{
	__u64 taken = 0;
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		prepare_removal(id + i);
		taken += submit_batch(0);
		reap_removals(1);
	}
	return taken;
}

static __u64 remove_batch(__u64 id)
{
	unsigned int i;
	__u64 taken;

	for (i = 0; i < BATCH; i++)
		prepare_removal(id + i);
	taken = submit_batch(0);
	reap_removals(BATCH);
	return taken;
}

static void start_timeout(__u64 id)
{
	struct kretry_op op = {
		.policy = trip_policy,
		.event = KRETRY_EVENT_TRANSIENT,
		.key = 1,
		.attempt = ATTEMPT,
	};

	must(!ioctl(fd, KRETRY_IOC_STEP, &op), "STEP");
	prepare_timeout(&deadlines[0], op.deadline_ns, id);
	must(io_uring_submit(&pending_ring) == 1, "TIMEOUT");
}

static void finish_timeout(void)
{
	reap(-ETIME);
}

const struct pending timeouts = {
	.name = "timeout", .open = open_timeouts, .close = close_timeouts, .arm = arm_later,
	.cancel = remove_each, .cancel_batch = remove_batch, .arm_soon = arm_soon,
	.read = reap_expired, .start = start_timeout, .finish = finish_timeout,
};
