// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What is measured: each function makes the calls of one sample. */
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/random.h>

#include "bench.h"

struct kretry_op ops[BATCH_MAX] __attribute__((aligned(64)));
struct kretry_op single __attribute__((aligned(64)));
struct io_uring ring;
int kretry_fd, random_fd;

static volatile __u64 sink;

/* The loop around each of the others: its cost is taken off theirs. */
void run_empty(const struct bench *bench)
{
	unsigned int i;

	(void)bench;
	for (i = 0; i < SINGLES; i++)
		__asm__ volatile("" : : : "memory");
}

void run_getppid(const struct bench *bench)
{
	unsigned int i;

	(void)bench;
	for (i = 0; i < SINGLES; i++)
		syscall(SYS_getppid);
}

void run_ioctl_unknown(const struct bench *bench)
{
	unsigned int i;

	(void)bench;
	for (i = 0; i < SINGLES; i++)
		ioctl(kretry_fd, _IO(KRETRY_IOC_MAGIC, 0xff), 0);
}

/* The least that a driver's own ioctl costs: this one writes one int. */
void run_ioctl_zero(const struct bench *bench)
{
	unsigned int i;
	int entropy;

	(void)bench;
	for (i = 0; i < SINGLES; i++)
		ioctl(random_fd, RNDGETENTCNT, &entropy);
}

void run_uring_nop(const struct bench *bench)
{
	struct io_uring_cqe *cqe;
	unsigned int i;

	(void)bench;
	for (i = 0; i < SINGLES; i++) {
		io_uring_prep_nop(io_uring_get_sqe(&ring));
		io_uring_submit_and_wait(&ring, 1);
		if (!io_uring_peek_cqe(&ring, &cqe))
			io_uring_cqe_seen(&ring, cqe);
	}
}

void run_clock_gettime(const struct bench *bench)
{
	struct timespec ts;
	unsigned int i;

	(void)bench;
	for (i = 0; i < SINGLES; i++)
		clock_gettime(CLOCK_MONOTONIC, &ts);
}

void run_getrandom(const struct bench *bench)
{
	unsigned int i;
	__u64 rnd;

	(void)bench;
	for (i = 0; i < SINGLES; i++)
		if (getrandom(&rnd, sizeof(rnd), 0) != sizeof(rnd))
			err(1, "getrandom");
}

/* Exponential backoff with full jitter, as a careful program does it by itself. */
void run_replaced(const struct bench *bench)
{
	__u64 rnd, ceiling, delay;
	unsigned int i, attempt = ATTEMPT;
	struct timespec ts;

	(void)bench;
	for (i = 0; i < SINGLES; i++) {
		__asm__ volatile("" : "+r"(attempt));
		ceiling = CAP_NS;
		if (attempt < 63 && BASE_NS <= CAP_NS >> attempt)
			ceiling = BASE_NS << attempt;
		if (getrandom(&rnd, sizeof(rnd), 0) != sizeof(rnd))
			err(1, "getrandom");
		delay = ((unsigned __int128)rnd * (ceiling + 1)) >> 64;
		clock_gettime(CLOCK_MONOTONIC, &ts);
		sink = ts.tv_sec * 1000000000ULL + ts.tv_nsec + delay;
	}
}

/* Of eight events four are a BEGIN, three an OK and one is a failure. */
static __u8 mixed_event(unsigned int i)
{
	if (i % 8 == 7)
		return KRETRY_EVENT_TRANSIENT;
	return i % 2 ? KRETRY_EVENT_OK : KRETRY_EVENT_BEGIN;
}

void prepare_op(const struct bench *bench, struct kretry_op *op, unsigned int i)
{
	*op = (struct kretry_op) {
		.policy = bench->policy,
		.event = bench->event ? bench->event : mixed_event(i),
		.flags = bench->flags,
		.hint_ns = bench->hint_ns,
		.key = bench->event ? 1 : 1 + i / 8 % KEYS,
		.attempt = ATTEMPT,
	};
}

void run_step(const struct bench *bench)
{
	struct kretry_op *op = &single;
	unsigned int i;

	prepare_op(bench, op, 0);
	for (i = 0; i < SINGLES; i++) {
		op->event = bench->event;
		op->flags = bench->flags;
		op->hint_ns = bench->hint_ns;
		op->attempt = ATTEMPT;
		if (ioctl(kretry_fd, KRETRY_IOC_STEP, op))
			err(1, "STEP");
	}
}

/* An operation that succeeds at once. */
void run_pair(const struct bench *bench)
{
	struct kretry_op op = { .policy = bench->policy, .key = 1 };
	unsigned int i;

	for (i = 0; i < SINGLES; i++) {
		op.event = KRETRY_EVENT_BEGIN;
		if (ioctl(kretry_fd, KRETRY_IOC_STEP, &op))
			err(1, "BEGIN");
		op.event = KRETRY_EVENT_OK;
		if (ioctl(kretry_fd, KRETRY_IOC_STEP, &op))
			err(1, "OK");
	}
}

/* The id of no policy: the copy in, the look-up, and nothing after it. */
void run_step_no_policy(const struct bench *bench)
{
	struct kretry_op op = { .policy = ~0U, .event = KRETRY_EVENT_TRANSIENT };
	unsigned int i;

	(void)bench;
	for (i = 0; i < SINGLES; i++)
		if (!ioctl(kretry_fd, KRETRY_IOC_STEP, &op) || errno != ENOENT)
			err(1, "STEP of no policy");
}

void run_batch(const struct bench *bench)
{
	struct kretry_batch batch = {
		.size = sizeof(batch),
		.count = bench->batch,
		.op_size = sizeof(struct kretry_op),
	};
	unsigned int i;

	for (i = 0; i < BATCH_MAX; i += bench->batch) {
		batch.ops = (uintptr_t)&ops[i];
		if (ioctl(kretry_fd, KRETRY_IOC_STEP_BATCH, &batch) != (int)bench->batch)
			err(1, "STEP_BATCH");
	}
}
