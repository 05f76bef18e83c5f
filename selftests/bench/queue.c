// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Retries that wait in kretry's queue, and those that wait as io_uring commands. */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pending.h"

/* Of the headline's strategy and jitter: after ATTEMPT retries the ceiling is the cap. */
#define FULL_JITTER(from, to)	{ .strategy = KRETRY_EXPONENTIAL, .jitter = KRETRY_JITTER_FULL, \
				  .multiplier_ppm = 2000000, .base_ns = (to) >> ATTEMPT, \
				  .floor_ns = (from), .cap_ns = (to) }

static const struct kretry_backoff later = FULL_JITTER(LATER_FROM_NS, LATER_TO_NS);
static const struct kretry_backoff soon = FULL_JITTER(SOON_FROM_NS, SOON_TO_NS);
static const struct kretry_backoff trip = {
	.strategy = KRETRY_FIXED, .base_ns = TRIP_NS, .cap_ns = TRIP_NS,
};

static struct kretry_op batch[BATCH] __attribute__((aligned(64)));
static unsigned int later_policy, soon_policy, trip_policy;
static bool shuffled;
static int fd;

static __u64 user_data_of(__u64 id)
{
	return shuffled ? shuffle(id) : id;
}

static void open_queue(void)
{
	fd = open("/dev/kretry", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	must(fd >= 0, "/dev/kretry");
	later_policy = create_policy(&later, NULL, NULL, fd);
	soon_policy = create_policy(&soon, NULL, NULL, fd);
	trip_policy = create_policy(&trip, NULL, NULL, fd);
}

static void open_in_order(void)
{
	shuffled = false;
	open_queue();
}

static void open_shuffled(void)
{
	shuffled = true;
	open_queue();
}

static void close_queue(void)
{
	close(fd);
}

static void prepare_op_of(struct kretry_op *op, unsigned int policy, __u64 id)
{
	*op = (struct kretry_op) {
		.policy = policy,
		.event = KRETRY_EVENT_TRANSIENT,
		.flags = KRETRY_OP_QUEUE,
		.key = 1,
		.user_data = user_data_of(id),
		.attempt = ATTEMPT,
	};
}

static __u64 step_batch(unsigned int policy, __u64 id)
{
	struct kretry_batch args = {
		.size = sizeof(args),
		.ops = (uintptr_t)batch,
		.count = BATCH,
		.op_size = sizeof(struct kretry_op),
	};
	unsigned int i;
	__u64 start;

	for (i = 0; i < BATCH; i++)
		prepare_op_of(&batch[i], policy, id + i);
	start = now_ns();
	must(ioctl(fd, KRETRY_IOC_STEP_BATCH, &args) == (int)BATCH, "STEP_BATCH with QUEUE");
	start = now_ns() - start;
	for (i = 0; i < BATCH; i++)
		if (batch[i].verdict != KRETRY_RETRY || !(batch[i].flags & KRETRY_OP_QUEUED))
			errx(1, "an op was not queued: verdict %u, flags %#x", batch[i].verdict,
			     batch[i].flags);
	return start;
}

static __u64 arm_later(__u64 id)
{
	return step_batch(later_policy, id);
}

static __u64 arm_soon(void)
{
	static __u64 next = SOON_ID;

	next += BATCH;
	return step_batch(soon_policy, next);
}

static __u64 read_due(void)
{
	__u64 start = now_ns();
	unsigned int i;

	must(read(fd, batch, sizeof(batch)) == sizeof(batch), "read of what is due");
	start = now_ns() - start;
	for (i = 0; i < BATCH; i++)
		if (batch[i].verdict != KRETRY_GO)
			errx(1, "an op that is due has verdict %u", batch[i].verdict);
	return start;
}

static void prepare_cancel(struct kretry_cancel *cancel, __u64 id)
{
	*cancel = (struct kretry_cancel) {
		.size = sizeof(*cancel),
		.user_data = user_data_of(id),
	};
}

static __u64 cancel_each(__u64 id)
{
	static struct kretry_cancel cancels[BATCH];
	unsigned int i;
	__u64 start;

	for (i = 0; i < BATCH; i++)
		prepare_cancel(&cancels[i], id + i);
	start = now_ns();
	for (i = 0; i < BATCH; i++)
		must(!ioctl(fd, KRETRY_IOC_CANCEL, &cancels[i]), "CANCEL");
	return now_ns() - start;
}

void prepare_command(int kretry, unsigned int cmd, void *arg, size_t size)
{
	struct kretry_uring payload = { .ops = (uintptr_t)arg, .count = 1, .op_size = size };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&pending_ring);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, kretry, NULL, 0, 0);
	/* cmd_op and cmd[] of newer headers. */
	memcpy(&sqe->off, &cmd, sizeof(cmd));
	memcpy((char *)sqe + 48, &payload, sizeof(payload));
}

static __u64 cancel_batch(__u64 id)
{
	static struct kretry_cancel cancels[BATCH];
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		prepare_cancel(&cancels[i], id + i);
		prepare_command(fd, KRETRY_IOC_CANCEL, &cancels[i], sizeof(cancels[i]));
	}
	return submit_batch(BATCH);
}

static void start_wait(__u64 id)
{
	prepare_op_of(&batch[0], trip_policy, id);
	batch[0].flags = 0;
	prepare_command(fd, KRETRY_IOC_WAIT, &batch[0], sizeof(batch[0]));
	must(io_uring_submit(&pending_ring) == 1, "WAIT");
}

static void finish_wait(void)
{
	struct io_uring_cqe *cqe;

	if (io_uring_peek_cqe(&pending_ring, &cqe))
		errx(1, "a WAIT has not completed");
	if (cqe->res)
		errx(1, "a WAIT completed with %d", cqe->res);
	io_uring_cqe_seen(&pending_ring, cqe);
}

#define QUEUE(n, s)	{ .name = (n), .shuffled = (s), .close = close_queue, .arm = arm_later, \
			  .open = (s) ? open_shuffled : open_in_order, .cancel = cancel_each, \
			  .cancel_batch = cancel_batch, .arm_soon = arm_soon, .read = read_due, \
			  .start = start_wait, .finish = finish_wait }

const struct pending queue_in_order = QUEUE("queue", false);
const struct pending queue_shuffled = QUEUE("queue_shuffled", true);
