/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What each user has taken of what is bounded for each user. */
#ifndef KRETRY_USER_H
#define KRETRY_USER_H

#include <linux/cred.h>

/*
 * Charge one policy to the user of @cred and to the owner of each user namespace above it. 0,
 * EDQUOT or ENOMEM with nothing charged.
 */
int kretry_user_charge(const struct cred *cred);
void kretry_user_uncharge(const struct cred *cred);

#endif /* KRETRY_USER_H */
