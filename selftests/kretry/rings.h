/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of io_uring commands share: a submission for each command, and its result. */
#ifndef KRETRY_SELFTEST_RINGS_H
#define KRETRY_SELFTEST_RINGS_H

#include "common.h"

#include <liburing.h>

/* No completion is there. No command completes with that. */
#define KT_NOTHING	(-1000)

/* A ring of @entries; an SQPOLL thread sleeps at once. 0 or -errno. */
int kt_ring(struct io_uring *ring, unsigned int entries, unsigned int flags);

/* Whether WAIT is a command of io_uring here. */
bool kt_ring_waits(int fd);

/* -------- submissions: put, not yet submitted -------- */

struct io_uring_sqe *kt_put(struct io_uring *ring, int fd, unsigned long command,
			    const struct kretry_uring *payload);
struct io_uring_sqe *kt_put_step(struct io_uring *ring, int fd, struct kretry_op *ops,
				 unsigned int count);

/* The submission has the user_data of the op. */
struct io_uring_sqe *kt_put_wait(struct io_uring *ring, int fd, struct kretry_op *op);
struct io_uring_sqe *kt_put_cancel(struct io_uring *ring, int fd, struct kretry_cancel *cancel);
struct io_uring_sqe *kt_put_nop(struct io_uring *ring, uint64_t user_data);

/* -------- completions -------- */

/* Submit all that was put and wait for one completion: its result. @user_data may be NULL. */
int kt_next(struct io_uring *ring, uint64_t *user_data);

/* The same without waiting: KT_NOTHING if none is there. */
int kt_look(struct io_uring *ring, uint64_t *user_data);

/* Submit all that was put, and wait for the completion of @user_data, which must be the next. */
int kt_result(struct io_uring *ring, uint64_t user_data);

/* -------- commands -------- */

/* A WAIT alone: put, submitted and completed. */
int kt_wait_for(struct io_uring *ring, int fd, struct kretry_op *op);

/* KRETRY_IOC_CANCEL; @cancel is poisoned first. */
int kt_cancel(int fd, uint64_t user_data, struct kretry_cancel *cancel);

/* A new op that has failed once: what a WAIT or QUEUE waits with. */
struct kretry_op kt_failed(uint32_t policy, uint64_t key, uint64_t user_data);

#endif /* KRETRY_SELFTEST_RINGS_H */
