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

	while (*slot && (*slot)->id != id)
		slot = &(*slot)->next;
	return slot;
}

struct policy_entry *policy_find(const struct kretry *k, u32 id)
{
	struct policy_entry *entry = k->buckets[id % POLICY_BUCKETS];

	while (entry && entry->id != id)
		entry = entry->next;
	return entry;
}

static void policy_drop(struct kretry *k, u32 id)
{
	struct policy_entry **slot = policy_slot(k, id);
	struct policy_entry *entry = *slot;

	if (!entry)
		return;
	*slot = entry->next;
	shared_return_leases(k, entry->state);
	state_put(entry->state);
	free(entry);
	k->policies--;
}

void policy_drop_all(struct kretry *k)
{
	unsigned int i;

	waiting_drop(k);
	for (i = 0; i < POLICY_BUCKETS; i++)
		while (k->buckets[i])
			policy_drop(k, k->buckets[i]->id);
}

/* Takes over @entry. One of the same id is what the module has forgotten: replaced. */
static void policy_keep(struct kretry *k, struct policy_entry *entry, u32 id, u32 open_flags)
{
	struct policy_entry **slot;

	policy_drop(k, id);
	slot = policy_slot(k, id);
	entry->id = id;
	entry->open_flags = open_flags;
	entry->next = NULL;
	*slot = entry;
	k->policies++;
}

/* There is a free id as long as there are fewer policies than ids. */
static u32 free_id(struct kretry *k)
{
	do {
		k->last_id++;
	} while (!k->last_id || policy_find(k, k->last_id));
	return k->last_id;
}

static int process_create(struct kretry *k, struct policy_entry *entry,
			  struct kretry_policy *policy)
{
	int ret = kretry_policy_check(policy);

	if (ret < 0)
		return ret;
	if (k->policies >= PROCESS_MAX_POLICIES)
		return -EDQUOT;
	if (policy->name[0]) {
		ret = named_create(policy, &entry->state);
	} else {
		entry->state = state_new(policy);
		ret = entry->state ? 0 : -ENOMEM;
	}
	if (ret < 0)
		return ret;
	policy->id = free_id(k);
	return 0;
}

static int module_create(struct kretry *k, struct policy_entry *entry,
			 struct kretry_policy *policy)
{
	int ret;

	entry->state = state_new(policy);
	if (!entry->state)
		return -ENOMEM;
	ret = device_ioctl(k, KRETRY_IOC_POLICY_CREATE, policy);
	if (ret < 0)
		state_put(entry->state);
	return ret;
}

int kretry_policy_create(struct kretry *k, struct kretry_policy *policy)
{
	struct policy_entry *entry = calloc(1, sizeof(*entry));
	struct kretry_policy asked = *policy;
	int ret;

	if (!entry)
		return -ENOMEM;
	asked.size = sizeof(asked);
	lock_library();
	ret = k->fd >= 0 ? module_create(k, entry, &asked) : process_create(k, entry, &asked);
	if (ret >= 0) {
		policy->size = sizeof(*policy);
		policy->id = asked.id;
		policy_keep(k, entry, asked.id, policy->open_flags);
	}
	unlock_library();
	if (ret < 0)
		free(entry);
	return ret < 0 ? ret : 0;
}

static int process_get(struct kretry *k, struct kretry_policy *policy)
{
	struct policy_entry *entry = policy_find(k, policy->id);

	if (!entry)
		return -ENOENT;
	*policy = entry->state->params;
	policy->id = entry->id;
	policy->open_flags = entry->open_flags;
	return 0;
}

static int policy_get(struct kretry *k, struct kretry_policy *policy)
{
	return k->fd >= 0 ? device_ioctl(k, KRETRY_IOC_POLICY_GET, policy) : process_get(k, policy);
}

int kretry_policy_get(struct kretry *k, uint32_t id, struct kretry_policy *policy)
{
	struct kretry_policy answer = { .size = sizeof(answer), .id = id };
	int ret;

	lock_library();
	ret = policy_get(k, &answer);
	unlock_library();
	if (ret < 0)
		return ret;
	*policy = answer;
	return 0;
}

int kretry_policy_close(struct kretry *k, uint32_t id)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref), .id = id };
	struct policy_entry *entry;
	int ret = 0;

	lock_library();
	entry = policy_find(k, id);
	if (k->fd >= 0)
		ret = device_ioctl(k, KRETRY_IOC_POLICY_CLOSE, &ref);
	else if (!entry)
		ret = -ENOENT;
	else if (entry->queued || shared_has_leases(k, entry->state))
		ret = -EBUSY;
	if (ret >= 0 || ret == -ENOENT)
		policy_drop(k, id);
	unlock_library();
	return ret < 0 ? ret : 0;
}

static int policy_params(struct kretry *k, u32 id, struct kretry_policy *policy)
{
	struct policy_entry *entry;

	lock_library();
	entry = policy_find(k, id);
	if (entry)
		*policy = entry->state->params;
	unlock_library();
	/* Else one that was registered on the same file by other means. */
	return entry ? 0 : kretry_policy_get(k, id, policy);
}

int policy_clock(struct kretry *k, u32 id, bool *readmits)
{
	struct kretry_policy policy;
	int ret = policy_params(k, id, &policy);

	if (ret < 0)
		return ret;
	*readmits = kretry_has_breaker(&policy) || policy.pacing.pace_ns;
	return (int)policy.clockid;
}

/* -------- names -------- */

static int name_copy(struct kretry_policy_ref *ref, const char *name)
{
	size_t len = strnlen(name, KRETRY_NAME_MAX);

	if (!len || len == KRETRY_NAME_MAX)
		return -EINVAL;
	memcpy(ref->name, name, len);
	return 0;
}

/* The parameters of what has been opened are kept too, if the mode of the policy lets us read. */
static int module_open(struct kretry *k, struct policy_entry *entry, struct kretry_policy_ref *ref)
{
	struct kretry_policy policy = { .size = sizeof(policy) };
	int ret = device_ioctl(k, KRETRY_IOC_POLICY_OPEN, ref);

	if (ret < 0)
		return ret;
	policy.id = ref->id;
	if (device_ioctl(k, KRETRY_IOC_POLICY_GET, &policy) >= 0)
		entry->state = state_new(&policy);
	return 0;
}

static int process_open(struct kretry *k, struct policy_entry *entry, struct kretry_policy_ref *ref)
{
	int ret;

	if (ref->open_flags & ~(KRETRY_OPEN_GLOBAL | KRETRY_OPEN_NOTIFY))
		return -EINVAL;
	if (k->policies >= PROCESS_MAX_POLICIES)
		return -EDQUOT;
	ret = named_open((const char *)ref->name, ref->open_flags, &entry->state);
	if (!ret)
		ref->id = free_id(k);
	return ret;
}

int kretry_policy_open(struct kretry *k, const char *name, unsigned int open_flags, uint32_t *id)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref), .open_flags = open_flags };
	struct policy_entry *entry;
	int ret = name_copy(&ref, name);

	if (ret < 0)
		return ret;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	lock_library();
	ret = k->fd >= 0 ? module_open(k, entry, &ref) : process_open(k, entry, &ref);
	if (ret >= 0) {
		*id = ref.id;
		if (entry->state)
			policy_keep(k, entry, ref.id, open_flags);
	}
	unlock_library();
	if (ret < 0 || !entry->state)
		free(entry);
	return ret < 0 ? ret : 0;
}

int kretry_policy_unlink(struct kretry *k, const char *name, unsigned int open_flags)
{
	struct kretry_policy_ref ref = { .size = sizeof(ref), .open_flags = open_flags };
	int ret = name_copy(&ref, name);

	if (ret < 0)
		return ret;
	if (k->fd >= 0) {
		ret = device_ioctl(k, KRETRY_IOC_POLICY_UNLINK, &ref);
		return ret < 0 ? ret : 0;
	}
	if (open_flags & ~KRETRY_OPEN_GLOBAL)
		return -EINVAL;
	lock_library();
	ret = named_unlink(name, open_flags);
	unlock_library();
	return ret;
}

static int list_into(struct kretry *k, struct kretry_policy_entry *entries, unsigned int room,
		     unsigned int *count)
{
	struct kretry_policy_list list = {
		.size = sizeof(list),
		.entry_size = sizeof(*entries),
		.entries = (uintptr_t)entries,
		.count = room,
	};
	int ret = 0;

	if (k->fd >= 0) {
		ret = device_ioctl(k, KRETRY_IOC_POLICY_LIST, &list);
		*count = list.count;
	} else {
		lock_library();
		*count = named_list(entries, room);
		unlock_library();
	}
	return ret < 0 ? ret : 0;
}

int kretry_policy_list(struct kretry *k, struct kretry_policy_entry **entries, unsigned int *count)
{
	struct kretry_policy_entry *array = NULL, *larger;
	unsigned int room = 16, there;
	int ret;

	for (;;) {
		larger = realloc(array, room * sizeof(*array));
		ret = larger ? 0 : -ENOMEM;
		if (ret < 0)
			break;
		array = larger;
		ret = list_into(k, array, room, &there);
		if (ret < 0)
			break;
		if (there <= room) {
			*entries = array;
			*count = there;
			return 0;
		}
		room = there + 16;
	}
	free(array);
	return ret;
}
