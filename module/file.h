/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* One open of /dev/kretry. */
#ifndef KRETRY_FILE_H
#define KRETRY_FILE_H

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "queue.h"

struct kretry_handle;

/**
 * struct kretry_file - what one open file holds
 * @handles:	id to struct kretry_handle; written under its own lock, read under RCU
 * @newest:	the last one registered, if it is still there: most files have just one. Written
 *		under the lock of @handles, read under RCU
 * @next_id:	where the search for a free id goes on; protected by the lock of @handles
 * @cred:	who acts, and whose quotas are charged: the opener, pinned by the file
 * @lease_lock:	protects @leases; taken under a key's lock
 * @leases:	probes given to this file
 * @wait:	who polls it or waits in read()
 * @queue:	what sleeps until its deadline
 * @node:	in the list of all files, see redraw.c
 */
struct kretry_file {
	struct xarray handles;
	struct kretry_handle *newest;
	u32 next_id;
	const struct cred *cred;
	spinlock_t lease_lock;
	struct list_head leases;
	wait_queue_head_t wait;
	struct kretry_queue queue;
	struct list_head node;
};

extern const struct file_operations kretry_fops;

#endif /* KRETRY_FILE_H */
