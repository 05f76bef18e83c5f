/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the machine went through while ops waited: being cloned, being asleep. */
#ifndef KRETRY_REDRAW_H
#define KRETRY_REDRAW_H

#include <linux/time.h>
#include <linux/types.h>

struct kretry_file;

int kretry_redraw_init(void);
void kretry_redraw_exit(void);

/* An open file, whose queue a clone of the machine concerns. */
void kretry_redraw_add(struct kretry_file *kf);
void kretry_redraw_remove(struct kretry_file *kf);

/* Whether the machine was asleep, or about to be, when that deadline came. @now is on @clockid. */
bool kretry_redraw_slept(clockid_t clockid, u64 deadline_ns, u64 now);

#endif /* KRETRY_REDRAW_H */
