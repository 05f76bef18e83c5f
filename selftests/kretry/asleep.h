/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ops that wait through a suspend. The host makes each of those ten minutes long, on
 * CLOCK_BOOTTIME; CLOCK_MONOTONIC stands still meanwhile. Functions that can fail say why and
 * return 1, unless they say otherwise.
 */
#ifndef KRETRY_SELFTEST_ASLEEP_H
#define KRETRY_SELFTEST_ASLEEP_H

#include "shared.h"
#include "rings.h"

#define OPS	128
#define MINUTE	(60 * SEC)
#define ASLEEP	(10 * MINUTE)
/* To which comes what the host takes to notice. */
#define INEXACT	(30 * SEC)
/* How late an op may be found. */
#define LATE	(5 * MSEC)

/* One op: its deadline when it was granted, and when it came back, on the clock of its policy. */
struct sleeper {
	uint64_t deadline;
	uint64_t woke;
	struct kretry_op op;
};

struct bed {
	struct kt_party party;
	struct kretry_policy policy;
	struct io_uring ring;
	struct sleeper sleepers[OPS];
};

/* With a policy of 5 minutes on CLOCK_BOOTTIME, which bed_create() creates. */
int bed_make(struct bed *bed);
void bed_leave(struct bed *bed);
int bed_create(struct bed *bed);

/* -------- the machine -------- */

/* What CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC by. */
uint64_t time_asleep(void);

/* Suspend. The time on CLOCK_BOOTTIME when that was over; 0 if it was not as it should be. */
uint64_t suspended(void);

/* Have the kernel prepare for it, freeze all tasks, and think better of it. */
int almost_suspended(void);

/* -------- ops -------- */

int queue_one(struct bed *bed, unsigned int number);
int queue_all(struct bed *bed);
int wait_all(struct bed *bed);

/* Take what has come. How many, or -errno. */
int take(struct bed *bed);

/* Until all have come, or for an hour none. */
int take_all(struct bed *bed);

/* -------- what became of them -------- */

int all_on_time(struct bed *bed);

/* From @from on over all of the own delay: some in each quarter, none after the last. */
int all_spread(struct bed *bed, uint64_t from);

/* STAT's count of the policy. */
unsigned int count_spread(struct bed *bed);

#endif /* KRETRY_SELFTEST_ASLEEP_H */
