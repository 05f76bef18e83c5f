/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of the queue share. Results are those of the call, or -errno. */
#ifndef KRETRY_SELFTEST_QUEUED_H
#define KRETRY_SELFTEST_QUEUED_H

#include "common.h"

#define UTOK	((int64_t)KRETRY_UTOK)

/* A failure of class TRANSIENT that asks to be queued. */
struct kretry_op kt_queue_op(uint32_t policy, uint64_t user_data);

/* The same, stepped: 0 if it is queued now. */
int kt_queue(int fd, uint32_t policy, uint64_t user_data);

/* The same of @count ops, by batches, user_data from @first on. How many are queued. */
unsigned int kt_queue_many(int fd, uint32_t policy, uint64_t first, unsigned int count);

/* read() into room for @count ops, poisoned: how many came. -EIO where it is no whole number. */
int kt_take(int fd, struct kretry_op *ops, unsigned int count);

/* The only op there is to read, which must be there: 0, or -errno, or -EIO. */
int kt_take_one(int fd, struct kretry_op *op);

/* Take the op back, into @op, poisoned before. */
int kt_cancel(int fd, uint64_t user_data, struct kretry_op *op);

/* What poll() says of the file within @timeout_ms. */
int kt_poll(int fd, int timeout_ms);

void kt_nonblock(int fd, bool nonblock);

/* Ops of the policy that wait, on all files. */
int kt_waiting(int fd, uint32_t policy);

#endif /* KRETRY_SELFTEST_QUEUED_H */
