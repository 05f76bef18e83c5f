// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One SQE that is granted an attempt, sleeps and completes when it may start: a command of the
 * device where there is one, else a decision now and a timeout.
 */

#include <errno.h>
#include <string.h>

#include "internal.h"

enum {
	WAIT_NEW,
	WAIT_REFUSED,		/* new, but io_uring has refused the command for it */
	WAIT_COMMAND,		/* the kernel has it */
	WAIT_SLEEPING,		/* granted, and a timeout is on the ring */
	WAIT_AGAIN,		/* granted, and to be prepared again */
	WAIT_STOPPED,		/* refused at once: its SQE fails */
	WAIT_FAILED		/* with grant.error: its SQE fails */
};

/* What a wait keeps, in the private part of its struct. */
struct kept {
	struct kretry		*k;
	struct kretry_cancel	cancel;
	struct kretry_grant	grant;
	clockid_t		clockid;
	u32			attempt;	/* before the grant */
	int			error;
	u8			state;
} __attribute__((__may_alias__));

static struct kept *kept_of(struct kretry_wait *w)
{
	_Static_assert(sizeof(struct kept) <= sizeof(w->kept), "there is room");
	return (struct kept *)w->kept;
}

static const u8 stop_errnos[] = {
	[KRETRY_STOP_PERMANENT - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_PERMANENT,
	[KRETRY_STOP_UNSAFE - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_UNSAFE,
	[KRETRY_STOP_LIMIT - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_LIMIT,
	[KRETRY_STOP_HINT - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_HINT,
	[KRETRY_STOP_ELAPSED - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_ELAPSED,
	[KRETRY_STOP_BUDGET - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_BUDGET,
	[KRETRY_STOP_OPEN - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_OPEN,
	[KRETRY_STOP_COOLING - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_COOLING,
	[KRETRY_STOP_PACED - KRETRY_STOP_PERMANENT]	= KRETRY_ERRNO_STOP_PACED,
};

u8 wait_verdict(int res)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(stop_errnos); i++)
		if (res == -(int)stop_errnos[i])
			return (u8)(KRETRY_STOP_PERMANENT + i);
	return KRETRY_VERDICT_NONE;
}

static int stop_result(const struct kretry_wait *w)
{
	return -(int)stop_errnos[w->op.verdict - KRETRY_STOP_PERMANENT];
}

/* -------- preparing -------- */

/*
 * A link goes on after the timeout, unless the deadline is not the last word: then it breaks, as
 * nobody could stop it.
 */
static void prep_timeout(struct io_uring_sqe *sqe, struct kretry_wait *w)
{
	struct kept *kept = kept_of(w);
	unsigned int flags = IORING_TIMEOUT_ETIME_SUCCESS;

	if (w->op.verdict == KRETRY_RETRY && w->op.flags & KRETRY_OP_READMIT)
		flags = 0;
	prep_sleep(sqe, &w->ts, kept->clockid, w->op.deadline_ns, flags);
	kept->state = WAIT_SLEEPING;
}

/* Decided now, by whoever decides. */
static int prep_decided(struct io_uring_sqe *sqe, struct kretry_wait *w)
{
	struct kept *kept = kept_of(w);
	int ret = step_granted(kept->k, &w->op, &kept->grant);

	if (ret < 0)
		return ret;
	if (kretry_is_stop(w->op.verdict)) {
		kept->state = WAIT_STOPPED;
		command_prep_failing(sqe);
	} else {
		prep_timeout(sqe, w);
	}
	return 0;
}

static int check_wait(struct kretry *k, struct kretry_wait *w)
{
	struct kept *kept = kept_of(w);
	int ret = kretry_op_check(&w->op);
	bool readmits;

	if (ret < 0)
		return ret;
	if (w->op.flags & KRETRY_OP_QUEUE ||
	    (w->op.event != KRETRY_EVENT_BEGIN && !kretry_event_is_failure(w->op.event)))
		return -EINVAL;
	ret = policy_clock(k, w->op.policy, &readmits);
	if (ret < 0)
		return ret;
	kept->k = k;
	kept->clockid = ret;
	kept->attempt = w->op.attempt;
	w->op.verdict = KRETRY_VERDICT_NONE;
	return 0;
}

static int prep_new(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_wait *w)
{
	struct kept *kept = kept_of(w);
	bool refused = kept->state == WAIT_REFUSED;
	int ret = check_wait(k, w);

	if (ret < 0)
		return ret;
	if (refused || !command_offers(k, KRETRY_FEATURE_URING_WAIT))
		return prep_decided(sqe, w);
	command_prep(sqe, k, KRETRY_IOC_WAIT, &w->op, 1, sizeof(w->op));
	kept->state = WAIT_COMMAND;
	return 0;
}

int kretry_prep_wait(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_wait *w)
{
	struct kept *kept = kept_of(w);
	int ret = 0;

	switch (kept->state) {
	case WAIT_AGAIN:
		prep_timeout(sqe, w);
		break;
	case WAIT_COMMAND:
	case WAIT_SLEEPING:
		command_prep_failing(sqe);
		return -EBUSY;
	default:
		ret = prep_new(sqe, k, w);
	}
	if (ret < 0) {
		command_prep_failing(sqe);
		kept->state = WAIT_FAILED;
		kept->error = ret;
	}
	sqe->user_data = w->user_data;
	return ret;
}

/* -------- the result of a command -------- */

static int start_now(struct kretry_wait *w)
{
	w->op.verdict = KRETRY_GO;
	w->op.flags &= (u16)~KRETRY_OP_READMIT;
	w->op.deadline_ns = kretry_now(kept_of(w)->clockid);
	return 0;
}

static int command_result(struct kretry_wait *w, int res)
{
	struct kept *kept = kept_of(w);
	bool decided = w->op.event == KRETRY_EVENT_NONE;
	u8 verdict = wait_verdict(res);

	if (!res)
		return start_now(w);
	if (!decided && command_refused(kept->k, res)) {
		kept->state = WAIT_REFUSED;
		return -EAGAIN;
	}
	if (!decided || w->op.verdict == verdict)
		return res;
	w->op.attempt = kept->attempt;
	w->op.verdict = verdict;
	w->op.flags &= KRETRY_OP_IN_MASK;
	w->op.deadline_ns = 0;
	return res;
}

/* -------- the result of a timeout -------- */

static int again(struct kretry_wait *w)
{
	kept_of(w)->state = WAIT_AGAIN;
	return -EAGAIN;
}

/* Neither the charge nor a probe is for an attempt that is not made. */
static int give_back(struct kretry_wait *w, int res)
{
	struct kretry_op probe = w->op;
	struct kept *kept = kept_of(w);

	if (w->op.verdict == KRETRY_GO && w->op.flags & KRETRY_OP_PROBE) {
		probe.event = KRETRY_EVENT_CANCELLED;
		step_op(kept->k, &probe);
	}
	step_undo(kept->k, &w->op, &kept->grant);
	if (!kretry_is_stop(w->op.verdict)) {
		w->op.verdict = KRETRY_VERDICT_NONE;
		w->op.flags &= KRETRY_OP_IN_MASK;
		w->op.deadline_ns = 0;
	}
	return res;
}

static int readmit(struct kretry_wait *w)
{
	struct kept *kept = kept_of(w);
	int ret;

	w->op.event = KRETRY_EVENT_BEGIN;
	ret = step_op(kept->k, &w->op);
	if (ret < 0) {
		w->op.event = KRETRY_EVENT_NONE;
		return give_back(w, ret);
	}
	if (kretry_is_stop(w->op.verdict))
		return give_back(w, stop_result(w));
	return kretry_waits(&w->op, kretry_now(kept->clockid)) ? again(w) : start_now(w);
}

static int slept_result(struct kretry_wait *w, int res)
{
	if (res && res != -ETIME)
		return give_back(w, res);
	if (kretry_now(kept_of(w)->clockid) < w->op.deadline_ns)
		return again(w);
	if (w->op.verdict == KRETRY_RETRY && w->op.flags & KRETRY_OP_READMIT)
		return readmit(w);
	return start_now(w);
}

int kretry_wait_result(struct kretry_wait *w, int res)
{
	struct kept *kept = kept_of(w);
	u8 state = kept->state;

	kept->state = WAIT_NEW;
	switch (state) {
	case WAIT_COMMAND:
		return command_result(w, res);
	case WAIT_SLEEPING:
		return slept_result(w, res);
	case WAIT_STOPPED:
		return stop_result(w);
	case WAIT_FAILED:
		return kept->error;
	}
	kept->state = state;
	return -EINVAL;
}

/* -------- cancelling -------- */

static struct kretry_cancel *cancel_of(struct kretry_wait *w)
{
	struct kretry_cancel *cancel = &kept_of(w)->cancel;

	*cancel = (struct kretry_cancel) {
		.size = sizeof(*cancel),
		.user_data = w->op.user_data,
	};
	return cancel;
}

void kretry_prep_wait_cancel(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_wait *w)
{
	u8 state = kept_of(w)->state;

	if (state == WAIT_COMMAND)
		command_prep(sqe, k, KRETRY_IOC_CANCEL, cancel_of(w), 1,
			     sizeof(struct kretry_cancel));
	else if (state == WAIT_SLEEPING)
		io_uring_prep_timeout_remove(sqe, w->user_data, 0);
	else
		command_prep_failing(sqe);
}

int kretry_wait_cancel(struct kretry *k, struct io_uring *ring, struct kretry_wait *w)
{
	struct io_uring_sync_cancel_reg reg = {
		.addr = w->user_data,
		.fd = -1,
		.timeout = { .tv_sec = -1, .tv_nsec = -1 },
	};
	u8 state = kept_of(w)->state;
	int ret = -ENOENT;

	if (state == WAIT_COMMAND)
		ret = device_ioctl(k, KRETRY_IOC_CANCEL, cancel_of(w));
	else if (state == WAIT_SLEEPING)
		ret = io_uring_register_sync_cancel(ring, &reg);
	return ret < 0 ? ret : 0;
}
