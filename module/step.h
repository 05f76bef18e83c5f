/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* STEP and STEP_BATCH. */
#ifndef KRETRY_STEP_H
#define KRETRY_STEP_H

#include "ioctl.h"

long kretry_step(struct kretry_file *kf, void __user *uop);
long kretry_step_batch(struct kretry_cmd *cmd);

#endif /* KRETRY_STEP_H */
