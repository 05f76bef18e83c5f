/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* STAT and FORCE: what operators see and do. */
#ifndef KRETRY_STAT_H
#define KRETRY_STAT_H

#include "ioctl.h"

long kretry_stat(struct kretry_cmd *cmd);
long kretry_force(struct kretry_cmd *cmd);

#endif /* KRETRY_STAT_H */
