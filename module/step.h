/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* STEP and STEP_BATCH: ops come in, are answered and go out. */
#ifndef KRETRY_STEP_H
#define KRETRY_STEP_H

#include "ioctl.h"

long kretry_step(struct kretry_file *kf, void __user *uarg);
long kretry_step_batch(struct kretry_cmd *cmd);

/* What STEP_BATCH does and returns, for @count ops. */
long kretry_step_ops(struct kretry_file *kf, struct kretry_op __user *uops, u32 count);

/* Read one op of the caller's and prove that it can be written; write it. False for a fault. */
bool kretry_step_fetch(struct kretry_op *op, struct kretry_op __user *uop);
bool kretry_step_store(const struct kretry_op *op, struct kretry_op __user *uop);

#endif /* KRETRY_STEP_H */
