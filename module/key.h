/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The keys of a policy: state that is made on first use and forgotten when it says nothing. */
#ifndef KRETRY_KEY_H
#define KRETRY_KEY_H

#include <linux/cache.h>
#include <linux/kretry.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include "state.h"

struct kretry_lease;

/**
 * struct kretry_key - one key of one policy
 * @next:	the next one in its bucket; written under the table's lock, read under RCU
 * @id:		which key
 * @leases:	probes outstanding; protected by @lock
 * @lock:	taken by whoever decides on this key, and under no other key's lock
 * @dead:	taken out of the table: look it up anew; protected by @lock
 * @used:	decided on since the last look for a key to forget; protected by @lock
 * @waiters:	ops queued that were granted on it; protected by @lock
 * @shared:	what the decision code keeps; protected by @lock
 * @rcu:	frees it after the last reader; @shared is over by then
 */
struct kretry_key {
	struct kretry_key __rcu *next;
	u64 id;
	struct kretry_lease *leases;
	spinlock_t lock;
	u32 dead : 1;
	u32 used : 1;
	u32 waiters : 30;
	union {
		struct kretry_shared shared;
		struct rcu_head rcu;
	};
};

/**
 * struct kretry_table - the keys of a policy
 * @lock:	protects what follows, except where RCU readers walk the buckets. A key's lock may
 *		be taken under it
 * @buckets:	heads of the chains
 * @seed:	odd and random: no caller can choose keys that share a bucket
 * @bits:	log2 of the number of buckets
 * @count:	keys in the table
 * @max:	most keys
 * @mode:	what new keys start with, an enum kretry_mode
 * @hand:	the bucket where the search for one to forget goes on
 * @evicted:	keys forgotten
 * @overflow:	stands for every key that found no place
 */
struct kretry_table {
	spinlock_t lock;
	struct kretry_key __rcu **buckets;
	u64 seed;
	u32 bits;
	u32 count;
	u32 max;
	u32 hand;
	u8 mode;
	u64 evicted;
	struct kretry_key overflow;
};

int kretry_key_cache_init(void);
void kretry_key_cache_exit(void);

int kretry_table_init(struct kretry_table *table, const struct kretry_policy *p, u64 now);

/* No reader and no writer is left. */
void kretry_table_exit(struct kretry_table *table);

/*
 * The key of that id, locked, made if need be; the overflow key where there is no place for it.
 * Called under RCU. @now is time on the policy's clock.
 */
struct kretry_key *kretry_key_lock(struct kretry_table *table, const struct kretry_policy *p,
				   u64 id, u64 now);
struct kretry_key *kretry_key_lock_overflow(struct kretry_table *table);
void kretry_key_unlock(struct kretry_key *key);

/* Copy what is kept for the key of that id; false where it has no state. Called under RCU. */
bool kretry_key_copy(struct kretry_table *table, u64 id, struct kretry_shared *copy);

/* Call @fn for each key, the overflow key included, with the key locked. Called under RCU. */
void kretry_table_each(struct kretry_table *table,
		       void (*fn)(struct kretry_key *key, void *arg), void *arg);

#endif /* KRETRY_KEY_H */
