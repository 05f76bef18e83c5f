/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* One open of /dev/kretry. */
#ifndef KRETRY_FILE_H
#define KRETRY_FILE_H

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/xarray.h>

struct kretry_policy_node;

/**
 * struct kretry_file - what one open file holds
 * @policies:	id to struct kretry_policy_node; written under its own lock, read under RCU
 * @newest:	the last one registered, if it is still there: most files have just one. Written
 *		under the lock of @policies, read under RCU
 * @next_id:	where the search for a free id goes on; protected by the lock of @policies
 * @cred:	whose quotas are charged: the opener's, pinned by the file
 */
struct kretry_file {
	struct xarray policies;
	struct kretry_policy_node *newest;
	u32 next_id;
	const struct cred *cred;
};

extern const struct file_operations kretry_fops;

#endif /* KRETRY_FILE_H */
