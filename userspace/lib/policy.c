// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Policies of a handle: registered with the module where there is one, and always kept here. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

void kretry_policy_init(struct kretry_policy *policy)
{
	memset(policy, 0, sizeof(*policy));
	policy->size = sizeof(*policy);
	policy->clockid = CLOCK_MONOTONIC;
	policy->max_retries = 4;
	policy->hint_limit_ns = 60000000000ULL;
	policy->backoff.strategy = KRETRY_EXPONENTIAL;
	policy->backoff.jitter = KRETRY_JITTER_FULL;
	policy->backoff.multiplier_ppm = 2 * KRETRY_PPM;
	policy->backoff.base_ns = 100000000ULL;
	policy->backoff.cap_ns = 20000000000ULL;
}

static struct policy_entry **policy_slot(struct kretry *k, u32 id)
{
	struct policy_entry **slot = &k->buckets[id % POLICY_BUCKETS];

	while (*slot && (*slot)->policy.id != id)
		slot = &(*slot)->next;
	return slot;
}

const struct kretry_policy *policy_find(const struct kretry *k, u32 id)
{
	const struct policy_entry *entry = k->buckets[id % POLICY_BUCKETS];

	while (entry && entry->policy.id != id)
		entry = entry->next;
	return entry ? &entry->policy : NULL;
}

static void policy_drop(struct kretry *k, u32 id)
{
	struct policy_entry **slot = policy_slot(k, id);
	struct policy_entry *entry = *slot;

	if (!entry)
		return;
	*slot = entry->next;
	free(entry);
	k->policies--;
}

void policy_drop_all(struct kretry *k)
{
	unsigned int i;

	for (i = 0; i < POLICY_BUCKETS; i++)
		while (k->buckets[i])
			policy_drop(k, k->buckets[i]->policy.id);
}

/* Takes over @entry. An entry of the same id is what the module has forgotten: replaced. */
static void policy_keep(struct kretry *k, struct policy_entry *entry)
{
	struct policy_entry **slot;

	policy_drop(k, entry->policy.id);
	slot = policy_slot(k, entry->policy.id);
	entry->next = NULL;
	*slot = entry;
	k->policies++;
}

/* Called with the lock held; there is a free id as long as there are fewer policies than ids. */
static int process_create(struct kretry *k, struct kretry_policy *policy)
{
	int ret;

	ret = kretry_policy_check(policy);
	if (ret < 0)
		return ret;
	if (k->policies >= PROCESS_MAX_POLICIES)
		return -EDQUOT;
	do {
		k->last_id++;
	} while (!k->last_id || policy_find(k, k->last_id));
	policy->id = k->last_id;
	return 0;
}

int kretry_policy_create(struct kretry *k, struct kretry_policy *policy)
{
	struct policy_entry *entry = malloc(sizeof(*entry));
	int ret;

	if (!entry)
		return -ENOMEM;
	entry->policy = *policy;
	entry->policy.size = sizeof(*policy);
	pthread_rwlock_wrlock(&k->lock);
	if (k->fd >= 0)
		ret = device_ioctl(k, KRETRY_IOC_POLICY_CREATE, &entry->policy);
	else
		ret = process_create(k, &entry->policy);
	if (ret >= 0) {
		entry->policy.size = sizeof(*policy);
		policy->size = sizeof(*policy);
		policy->id = entry->policy.id;
		policy_keep(k, entry);
	}
	pthread_rwlock_unlock(&k->lock);
	if (ret < 0)
		free(entry);
	return ret < 0 ? ret : 0;
}

int kretry_policy_get(struct kretry *k, uint32_t id, struct kretry_policy *policy)
{
	struct kretry_policy answer = { .size = sizeof(answer), .id = id };
	const struct kretry_policy *found;
	int ret = 0;

	pthread_rwlock_rdlock(&k->lock);
	if (k->fd >= 0) {
		ret = device_ioctl(k, KRETRY_IOC_POLICY_GET, &answer);
	} else {
		found = policy_find(k, id);
		if (found)
			answer = *found;
		else
			ret = -ENOENT;
	}
	pthread_rwlock_unlock(&k->lock);
	if (ret < 0)
		return ret;
	*policy = answer;
	return 0;
}

int kretry_policy_close(struct kretry *k, uint32_t id)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref), .id = id };
	int ret = 0;

	pthread_rwlock_wrlock(&k->lock);
	if (k->fd >= 0)
		ret = device_ioctl(k, KRETRY_IOC_POLICY_CLOSE, &ref);
	else if (!policy_find(k, id))
		ret = -ENOENT;
	if (ret >= 0 || ret == -ENOENT)
		policy_drop(k, id);
	pthread_rwlock_unlock(&k->lock);
	return ret < 0 ? ret : 0;
}

int policy_clock(struct kretry *k, u32 id)
{
	const struct kretry_policy *found;
	struct kretry_policy policy;
	int ret;

	pthread_rwlock_rdlock(&k->lock);
	found = policy_find(k, id);
	ret = found ? (int)found->clockid : -ENOENT;
	pthread_rwlock_unlock(&k->lock);
	if (found)
		return ret;
	/* One that was registered on the same file by other means. */
	ret = kretry_policy_get(k, id, &policy);
	return ret < 0 ? ret : (int)policy.clockid;
}
