/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of the queue share: ops that are queued, and reading them. */
#ifndef KRETRY_UNIT_QUEUED_H
#define KRETRY_UNIT_QUEUED_H

#include "library.h"

#include <poll.h>

static inline struct kretry_op queued_op(u32 policy, u64 user_data)
{
	return (struct kretry_op){
		.policy = policy,
		.event = KRETRY_EVENT_TRANSIENT,
		.flags = KRETRY_OP_QUEUE,
		.key = 1,
		.user_data = user_data,
	};
}

/* A failure of a new op, which is queued; as it is then. */
static inline struct kretry_op enqueue(struct kretry *k, u32 policy, u64 user_data)
{
	struct kretry_op op = queued_op(policy, user_data);

	assert_int_equal(kretry_step(k, &op), 0);
	assert_int_equal(op.verdict, KRETRY_RETRY);
	assert_int_equal(op.flags, KRETRY_OP_QUEUE | KRETRY_OP_QUEUED);
	assert_int_equal(op.attempt, 1);
	return op;
}

static inline bool is_readable(struct kretry *k, int timeout_ms)
{
	struct pollfd pfd = { .fd = kretry_queue_fd(k), .events = POLLIN };

	assert_true(pfd.fd >= 0);
	return poll(&pfd, 1, timeout_ms) == 1;
}

/* Wait for @count ops. */
static inline void read_all(struct kretry *k, struct kretry_op *ops, unsigned int count)
{
	unsigned int done = 0;
	int ret;

	while (done < count) {
		assert_true(is_readable(k, 10000));
		ret = kretry_queue_read(k, ops + done, count - done);
		assert_true(ret >= 0);
		done += (unsigned int)ret;
	}
}

static inline struct kretry_op read_one(struct kretry *k)
{
	struct kretry_op op;

	read_all(k, &op, 1);
	return op;
}

static inline void assert_empty(struct kretry *k)
{
	struct kretry_op op;

	assert_int_equal(kretry_queue_read(k, &op, 1), 0);
}

#endif /* KRETRY_UNIT_QUEUED_H */
