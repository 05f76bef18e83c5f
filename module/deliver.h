/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* How what waits in a queue leaves it: delivered, cancelled or dropped, exactly one of them. */
#ifndef KRETRY_DELIVER_H
#define KRETRY_DELIVER_H

#include <linux/uio.h>

#include "answer.h"
#include "ioctl.h"

/* read(): due ops, as many as fit. */
ssize_t kretry_deliver_read(struct kretry_file *kf, struct iov_iter *to, bool nonblock);

/* KRETRY_IOC_CANCEL. */
long kretry_deliver_cancel(struct kretry_cmd *cmd);

/* Drop what waits under policies that are being closed. */
void kretry_deliver_drop(struct kretry_file *kf);

/*
 * The deadline of @queued, which is TAKEN, has come. True if it is to be delivered, as @op; else it
 * waits on. Under the queue's lock.
 */
bool kretry_deliver_one(struct kretry_caller *caller, struct kretry_queued *queued,
			struct kretry_op *op);

#endif /* KRETRY_DELIVER_H */
