/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Leases: who has been given a probe of a half-open breaker. */
#ifndef KRETRY_LEASE_H
#define KRETRY_LEASE_H

#include <linux/list.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>

#include "file.h"
#include "key.h"

/**
 * struct kretry_lease - one probe that has not been reported
 * @next:	the next one of the key; protected by the key's lock
 * @in_file:	in the file's list; protected by the file's lease lock
 * @handle:	by which file, and of which policy; it waits for its leases
 * @key:	whose probe it is; a key with leases stays
 * @held:	not given back; protected by the key's lock
 * @generation:	stamped on the op, unlike any other of the policy
 * @period:	generation of the half-open period
 * @expires_ns:	lost from then on, on the policy's clock
 * @process:	who was given it
 * @exec_id:	its self_exec_id at that time: an exec gives the probe back
 * @rcu:	frees it
 */
struct kretry_lease {
	struct kretry_lease *next;
	struct list_head in_file;
	struct kretry_handle *handle;
	struct kretry_key *key;
	bool held;
	u32 generation;
	u32 period;
	u64 expires_ns;
	struct pid *process;
	u64 exec_id;
	struct rcu_head rcu;
};

/*
 * Make a lease on @key, whose lock the caller holds, for the probe it is about to ask for. ENOMEM,
 * or ENOENT if @handle is being closed.
 */
struct kretry_lease *kretry_lease_add(struct kretry_handle *handle, struct kretry_key *key,
				      u32 generation);

/* Undo it. The caller holds the key's lock. */
void kretry_lease_remove(struct kretry_lease *lease);

/*
 * Take the lease of @generation back from @kf; the caller holds @key's lock. True if it was a probe
 * of the period that is still on, of which the breaker then has one more to give.
 */
bool kretry_lease_take(struct kretry_file *kf, struct kretry_key *key, u32 generation);

/*
 * Take back what nobody will report: expired, which is a failure of the time when it expired, or of
 * a process that is gone. Under @key's lock.
 */
void kretry_lease_reap(struct kretry_key *key, u64 now, u64 rnd);

/* Take back the leases of @kf that @process holds. */
void kretry_lease_drop_process(struct kretry_file *kf, struct pid *process);

/* Take back the leases of @handle, and let it have no more. */
void kretry_lease_close(struct kretry_handle *handle);

/* Whether @handle has leases that have not expired. */
bool kretry_lease_any(struct kretry_handle *handle, u64 now);

#endif /* KRETRY_LEASE_H */
