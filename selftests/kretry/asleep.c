// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define POWER	"/sys/power/"

int bed_make(struct bed *bed)
{
	CHECK_EQ(0, kt_here(&bed->party));
	CHECK_EQ(0, fcntl(bed->party.fd, F_SETFL, O_NONBLOCK));
	CHECK_EQ(0, io_uring_queue_init(OPS, &bed->ring, 0));
	kt_policy(&bed->policy);
	bed->policy.clockid = CLOCK_BOOTTIME;
	bed->policy.backoff.base_ns = 5 * MINUTE;
	bed->policy.backoff.cap_ns = KRETRY_NS_MAX;
	return 0;
}

void bed_leave(struct bed *bed)
{
	io_uring_queue_exit(&bed->ring);
	kt_leave(&bed->party);
}

int bed_create(struct bed *bed)
{
	int id = kt_party_create(&bed->party, &bed->policy);

	CHECK(id > 0);
	bed->policy.id = (uint32_t)id;
	return 0;
}

/* -------- the machine -------- */

uint64_t time_asleep(void)
{
	uint64_t monotonic = kt_now(CLOCK_MONOTONIC);

	return kt_now(CLOCK_BOOTTIME) - monotonic;
}

static bool slept_well(uint64_t slept)
{
	if (slept > ASLEEP - INEXACT && slept < ASLEEP + INEXACT)
		return true;
	fprintf(stderr, "# slept for %llu ms\n", (unsigned long long)(slept / MSEC));
	return false;
}

uint64_t suspended(void)
{
	uint64_t before = time_asleep();

	if (kt_write_file(POWER "state", "mem") || !slept_well(time_asleep() - before))
		return 0;
	return kt_now(CLOCK_BOOTTIME);
}

int almost_suspended(void)
{
	uint64_t before = time_asleep();

	CHECK_EQ(0, kt_write_file("/sys/module/suspend/parameters/pm_test_delay", "0"));
	CHECK_EQ(0, kt_write_file(POWER "pm_test", "freezer"));
	CHECK_EQ(0, kt_write_file(POWER "state", "mem"));
	CHECK_EQ(0, kt_write_file(POWER "pm_test", "none"));
	CHECK(time_asleep() - before < MSEC);
	return 0;
}

/* -------- ops -------- */

static struct kretry_op new_op(struct bed *bed, unsigned int number)
{
	struct kretry_op op = kt_op(bed->policy.id, KRETRY_EVENT_TRANSIENT);

	op.user_data = number;
	return op;
}

int queue_one(struct bed *bed, unsigned int number)
{
	struct kretry_op op = new_op(bed, number);

	op.flags |= KRETRY_OP_QUEUE;
	CHECK_EQ(0, kt_step(bed->party.fd, &op));
	CHECK_EQ(KRETRY_RETRY, op.verdict);
	CHECK(op.flags & KRETRY_OP_QUEUED);
	bed->sleepers[number] = (struct sleeper) { .deadline = op.deadline_ns, .op = op };
	return 0;
}

int queue_all(struct bed *bed)
{
	unsigned int i;

	CHECK_EQ(0, bed_create(bed));
	for (i = 0; i < OPS; i++)
		CHECK_EQ(0, queue_one(bed, i));
	return 0;
}

int wait_all(struct bed *bed)
{
	unsigned int i;

	CHECK_EQ(0, bed_create(bed));
	for (i = 0; i < OPS; i++) {
		bed->sleepers[i] = (struct sleeper) { .op = new_op(bed, i) };
		kt_put_wait(&bed->ring, bed->party.fd, &bed->sleepers[i].op);
	}
	CHECK_EQ(OPS, io_uring_submit(&bed->ring));
	for (i = 0; i < OPS; i++) {
		CHECK_EQ(KRETRY_RETRY, bed->sleepers[i].op.verdict);
		bed->sleepers[i].deadline = bed->sleepers[i].op.deadline_ns;
	}
	return 0;
}

static int came(struct bed *bed, uint64_t number, uint64_t now)
{
	CHECK(number < OPS);
	CHECK_EQ(0, bed->sleepers[number].woke);
	bed->sleepers[number].woke = now;
	return 0;
}

/* How many have come, or -errno. */
static int take_ops(struct bed *bed)
{
	struct kretry_op ops[16];
	ssize_t len = read(bed->party.fd, ops, sizeof(ops));
	uint64_t now = kt_now((clockid_t)bed->policy.clockid);
	int i, count = (int)(len / (ssize_t)sizeof(ops[0]));

	if (len < 0)
		return errno == EAGAIN ? 0 : -errno;
	for (i = 0; i < count; i++) {
		if (came(bed, ops[i].user_data, now))
			return -EIO;
		bed->sleepers[ops[i].user_data].op = ops[i];
	}
	return count;
}

/* A wait's op stays as it was written when it was granted, so its verdict is put there here. */
static int take_waits(struct bed *bed)
{
	struct io_uring_cqe *cqe;
	int count = 0;

	while (!io_uring_peek_cqe(&bed->ring, &cqe)) {
		if (cqe->res || came(bed, cqe->user_data, kt_now((clockid_t)bed->policy.clockid)))
			return -EIO;
		bed->sleepers[cqe->user_data].op.verdict = KRETRY_GO;
		io_uring_cqe_seen(&bed->ring, cqe);
		count++;
	}
	return count;
}

int take(struct bed *bed)
{
	int ops = take_ops(bed), waits = take_waits(bed);

	return ops < 0 ? ops : waits < 0 ? waits : ops + waits;
}

int take_all(struct bed *bed)
{
	struct pollfd fds[2] = {
		{ .fd = bed->party.fd, .events = POLLIN },
		{ .fd = bed->ring.ring_fd, .events = POLLIN },
	};
	int left, got;

	for (left = OPS; left; left -= got) {
		CHECK(poll(fds, 2, 3600 * 1000) > 0);
		got = take(bed);
		CHECK(got >= 0);
	}
	return 0;
}

/* -------- what became of them -------- */

int all_on_time(struct bed *bed)
{
	struct sleeper *sleeper;

	for (sleeper = bed->sleepers; sleeper < &bed->sleepers[OPS]; sleeper++) {
		CHECK_EQ(KRETRY_GO, sleeper->op.verdict);
		CHECK(sleeper->woke >= sleeper->deadline);
		CHECK(sleeper->woke <= sleeper->deadline + LATE);
	}
	return 0;
}

int all_spread(struct bed *bed, uint64_t from)
{
	uint64_t delay = bed->policy.backoff.base_ns;
	unsigned int quarters = 0;
	struct sleeper *sleeper;

	for (sleeper = bed->sleepers; sleeper < &bed->sleepers[OPS]; sleeper++) {
		CHECK_EQ(KRETRY_GO, sleeper->op.verdict);
		CHECK(sleeper->woke >= from && sleeper->woke <= from + delay + LATE);
		quarters |= 1 << (4 * (sleeper->woke - from) / (delay + LATE));
	}
	CHECK_EQ(0xf, quarters);
	return 0;
}

unsigned int count_spread(struct bed *bed)
{
	return (unsigned int)kt_stat(&bed->party, bed->policy.id).spread;
}
