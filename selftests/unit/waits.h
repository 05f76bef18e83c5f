/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of waits share: a ring, a wait on it, and a request linked behind that. */
#ifndef KRETRY_UNIT_WAITS_H
#define KRETRY_UNIT_WAITS_H

#include "library.h"

struct fixture {
	struct kretry *k;
	struct io_uring ring;
	struct kretry_wait w;
	u32 policy;
};

#define WAIT_DATA	11
#define LINK_DATA	22
#define CANCEL_DATA	33
#define NOP_DATA	44

static inline void open_fixture(struct fixture *f, struct kretry_policy p)
{
	memset(f, 0, sizeof(*f));
	f->k = open_process();
	f->policy = create(f->k, p);
	assert_int_equal(io_uring_queue_init(8, &f->ring, 0), 0);
}

static inline void close_fixture(struct fixture *f)
{
	io_uring_queue_exit(&f->ring);
	kretry_close(f->k);
}

static inline struct kretry_op *fresh_op(struct fixture *f, u8 event)
{
	memset(&f->w, 0, sizeof(f->w));
	f->w.op = (struct kretry_op){ .policy = f->policy, .event = event, .key = 1 };
	f->w.user_data = WAIT_DATA;
	return &f->w.op;
}

static inline int prep(struct fixture *f)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&f->ring);
	int ret;

	/* What lay in it before must not matter. */
	memset(sqe, 0xa5, sizeof(*sqe));
	ret = kretry_prep_wait(sqe, f->k, &f->w);
	assert_true(ret == -EBUSY || sqe->user_data == WAIT_DATA);
	return ret;
}

/* A request linked behind the last one. */
static inline void prep_link(struct fixture *f)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&f->ring);

	f->ring.sq.sqes[(f->ring.sq.sqe_tail - 2) & f->ring.sq.ring_mask].flags |= IOSQE_IO_LINK;
	io_uring_prep_nop(sqe);
	sqe->user_data = LINK_DATA;
}

/* The result of the completion with @user_data, which must be the next one. */
static inline int next_result(struct fixture *f, u64 user_data)
{
	struct io_uring_cqe *cqe;
	int res;

	assert_true(io_uring_submit_and_wait(&f->ring, 1) >= 0);
	assert_int_equal(io_uring_peek_cqe(&f->ring, &cqe), 0);
	assert_int_equal(cqe->user_data, user_data);
	res = cqe->res;
	io_uring_cqe_seen(&f->ring, cqe);
	return res;
}

static inline int wait_result(struct fixture *f)
{
	return kretry_wait_result(&f->w, next_result(f, WAIT_DATA));
}

/* From a failure of a new op to its result, prepared as often as asked for. */
static inline int wait_for(struct fixture *f, u8 event, u16 flags)
{
	int ret;

	fresh_op(f, event)->flags = flags;
	assert_int_equal(prep(f), 0);
	while ((ret = wait_result(f)) == -EAGAIN)
		assert_int_equal(prep(f), 0);
	return ret;
}

static inline struct kretry_policy plain(u64 delay)
{
	return policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, delay, 3600 * SEC);
}

#endif /* KRETRY_UNIT_WAITS_H */
