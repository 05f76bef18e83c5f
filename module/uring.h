/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The io_uring commands. */
#ifndef KRETRY_URING_H
#define KRETRY_URING_H

struct io_uring_cmd;

int kretry_uring_cmd(struct io_uring_cmd *ioucmd, unsigned int issue_flags);

#endif /* KRETRY_URING_H */
