/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Named policies: who may find them, and how long they stay. */
#ifndef KRETRY_NAME_H
#define KRETRY_NAME_H

#include "ioctl.h"
#include "policy.h"

/* Forget those that linger: nobody is left who could open one. */
void kretry_name_exit(void);

/* POLICY_CREATE with a name: open the existing one, or create it. */
long kretry_name_create(struct kretry_cmd *cmd);
long kretry_name_open(struct kretry_cmd *cmd);
long kretry_name_unlink(struct kretry_cmd *cmd);
long kretry_name_list(struct kretry_cmd *cmd);

/* A handle on @policy is gone; does nothing where it has no name. */
void kretry_name_close(struct kretry_policy_node *policy);

/* Owner, group and mode, as @cred's user namespace has them. */
void kretry_name_show(const struct kretry_policy_node *policy, const struct cred *cred,
		      struct kretry_policy *params);

/* Whether @cred owns @policy, or has the privilege to act as if. */
bool kretry_name_is_owner(const struct kretry_policy_node *policy, const struct cred *cred);

#endif /* KRETRY_NAME_H */
