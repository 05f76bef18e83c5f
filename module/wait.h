/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* WAIT: an io_uring command that sleeps in the queue and completes at the deadline. */
#ifndef KRETRY_WAIT_H
#define KRETRY_WAIT_H

#include "queue.h"

struct io_uring_cmd;
struct kretry_op;

/* Issue the command: what ->uring_cmd() returns. */
int kretry_wait_issue(struct io_uring_cmd *ioucmd, struct kretry_op __user *uop,
		      unsigned int issue_flags);

/* The ring, or a task that exits, lets go of the command: complete it, if nothing else will. */
int kretry_wait_abandon(struct io_uring_cmd *ioucmd, unsigned int issue_flags);

/*
 * Have the task of a wait, which is TAKEN or CANCELLED, go on with it. It must not be touched
 * afterwards.
 */
void kretry_wait_send(struct kretry_queued *queued);

#endif /* KRETRY_WAIT_H */
