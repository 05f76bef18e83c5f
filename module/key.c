// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Readers find a key under RCU and then lock it; one that has been forgotten in between is dead,
 * and they start over. Only a key that cannot be told from a new one is ever forgotten.
 */
#include "key.h"

#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "decide.h"
#include "limits.h"

/* Buckets looked at for one place. */
#define KRETRY_SWEEP	64U

static struct kmem_cache *kretry_key_cache;

int kretry_key_cache_init(void)
{
#if !IS_ENABLED(CONFIG_LOCKDEP) && !IS_ENABLED(CONFIG_DEBUG_SPINLOCK)
	BUILD_BUG_ON(sizeof(struct kretry_key) > 256);
#endif
	kretry_key_cache = KMEM_CACHE(kretry_key, SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT);
	return kretry_key_cache ? 0 : -ENOMEM;
}

/* Keys are freed by call_rcu(). */
void kretry_key_cache_exit(void)
{
	rcu_barrier();
	kmem_cache_destroy(kretry_key_cache);
}

static void kretry_key_init(struct kretry_key *key, const struct kretry_policy *p, u64 id, u8 mode,
			    u64 now)
{
	RCU_INIT_POINTER(key->next, NULL);
	key->id = id;
	key->leases = NULL;
	spin_lock_init(&key->lock);
	key->dead = false;
	key->used = false;
	key->waiters = 0;
	kretry_shared_start(p, &key->shared, now);
	key->shared.mode = mode;
}

static void kretry_key_free(struct rcu_head *rcu)
{
	kmem_cache_free(kretry_key_cache, container_of(rcu, struct kretry_key, rcu));
}

int kretry_table_init(struct kretry_table *table, const struct kretry_policy *p, u64 now)
{
	spin_lock_init(&table->lock);
	table->max = kretry_max_keys;
	table->bits = order_base_2(table->max);
	table->seed = get_random_u64() | 1;
	table->count = 0;
	table->hand = 0;
	table->evicted = 0;
	table->mode = KRETRY_MODE_AUTOMATIC;
	kretry_key_init(&table->overflow, p, 0, table->mode, now);
	table->buckets = kvcalloc(1UL << table->bits, sizeof(*table->buckets), KRETRY_GFP);
	return table->buckets ? 0 : -ENOMEM;
}

void kretry_table_exit(struct kretry_table *table)
{
	struct kretry_key *key, *next;
	u32 i;

	for (i = 0; i < 1U << table->bits; i++) {
		for (key = rcu_dereference_protected(table->buckets[i], true); key; key = next) {
			next = rcu_dereference_protected(key->next, true);
			kmem_cache_free(kretry_key_cache, key);
		}
	}
	kvfree(table->buckets);
}

static struct kretry_key __rcu **kretry_table_bucket(struct kretry_table *table, u64 id)
{
	return &table->buckets[table->bits ? id * table->seed >> (64 - table->bits) : 0];
}

static struct kretry_key *kretry_table_find(struct kretry_table *table, u64 id)
{
	struct kretry_key *key = rcu_dereference(*kretry_table_bucket(table, id));

	while (key && key->id != id)
		key = rcu_dereference(key->next);
	return key;
}

/* Whether it may be forgotten now; a second chance for one in use. Under the table's lock. */
static bool kretry_key_is_idle(const struct kretry_table *table, struct kretry_key *key,
			       const struct kretry_policy *p, u64 now)
{
	bool idle = false;

	spin_lock(&key->lock);
	if (key->used) {
		key->used = false;
	} else if (!key->leases && !key->waiters && key->shared.mode == table->mode) {
		kretry_shared_advance(p, &key->shared, now);
		idle = kretry_shared_is_new(p, &key->shared);
	}
	key->dead = idle;
	spin_unlock(&key->lock);
	return idle;
}

static bool kretry_table_evict_from(struct kretry_table *table, struct kretry_key __rcu **link,
				    const struct kretry_policy *p, u64 now)
{
	struct kretry_key *key;

	lockdep_assert_held(&table->lock);
	while ((key = rcu_dereference_protected(*link, lockdep_is_held(&table->lock)))) {
		if (kretry_key_is_idle(table, key, p, now)) {
			rcu_assign_pointer(*link, rcu_dereference_protected(key->next, true));
			table->count--;
			table->evicted++;
			call_rcu(&key->rcu, kretry_key_free);
			return true;
		}
		link = &key->next;
	}
	return false;
}

/*
 * Twice around at the most, and in a large table not that far: what it costs to find nothing is
 * paid by every use of a key that has no place.
 */
static bool kretry_table_make_room(struct kretry_table *table, const struct kretry_policy *p,
				   u64 now)
{
	u32 i, mask = (1U << table->bits) - 1, most = min(2 * (mask + 1), KRETRY_SWEEP);

	lockdep_assert_held(&table->lock);
	for (i = 0; table->count >= table->max && i < most; i++)
		kretry_table_evict_from(table, &table->buckets[table->hand++ & mask], p, now);
	return table->count < table->max;
}

static struct kretry_key *kretry_key_add(struct kretry_table *table, const struct kretry_policy *p,
					 u64 id, u64 now)
{
	struct kretry_key *fresh, *key;
	struct kretry_key __rcu **bucket = kretry_table_bucket(table, id);

	fresh = kmem_cache_alloc(kretry_key_cache, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	if (!fresh)
		return &table->overflow;

	spin_lock_bh(&table->lock);
	key = kretry_table_find(table, id);
	if (!key && !kretry_table_make_room(table, p, now))
		key = &table->overflow;
	if (!key) {
		key = fresh;
		fresh = NULL;
		kretry_key_init(key, p, id, table->mode, now);
		RCU_INIT_POINTER(key->next, rcu_dereference_protected(*bucket, true));
		rcu_assign_pointer(*bucket, key);
		table->count++;
	}
	spin_unlock_bh(&table->lock);
	if (fresh)
		kmem_cache_free(kretry_key_cache, fresh);
	return key;
}

struct kretry_key *kretry_key_lock(struct kretry_table *table, const struct kretry_policy *p,
				   u64 id, u64 now)
	__acquires(&key->lock)
{
	struct kretry_key *key;

	for (;;) {
		key = kretry_table_find(table, id);
		if (!key)
			key = kretry_key_add(table, p, id, now);
		spin_lock_bh(&key->lock);
		if (!key->dead)
			break;
		spin_unlock_bh(&key->lock);
	}
	key->used = true;
	return key;
}

struct kretry_key *kretry_key_lock_overflow(struct kretry_table *table)
	__acquires(&table->overflow.lock)
{
	spin_lock_bh(&table->overflow.lock);
	return &table->overflow;
}

void kretry_key_unlock(struct kretry_key *key)
	__releases(&key->lock)
{
	spin_unlock_bh(&key->lock);
}

bool kretry_key_copy(struct kretry_table *table, u64 id, struct kretry_shared *copy)
{
	struct kretry_key *key = kretry_table_find(table, id);
	bool alive;

	if (!key)
		return false;
	spin_lock_bh(&key->lock);
	alive = !key->dead;
	if (alive)
		*copy = key->shared;
	spin_unlock_bh(&key->lock);
	return alive;
}

static void kretry_key_visit(struct kretry_key *key, void (*fn)(struct kretry_key *key, void *arg),
			     void *arg)
{
	spin_lock_bh(&key->lock);
	if (!key->dead)
		fn(key, arg);
	spin_unlock_bh(&key->lock);
}

void kretry_table_each(struct kretry_table *table,
		       void (*fn)(struct kretry_key *key, void *arg), void *arg)
{
	struct kretry_key *key;
	u32 i;

	kretry_key_visit(&table->overflow, fn, arg);
	for (i = 0; i < 1U << table->bits; i++) {
		key = rcu_dereference(table->buckets[i]);
		for (; key; key = rcu_dereference(key->next))
			kretry_key_visit(key, fn, arg);
	}
}
