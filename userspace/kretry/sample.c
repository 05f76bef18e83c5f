// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The counters of named policies. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"

static int take_sample(struct kretry *k, const uint64_t *key, struct sample *sample)
{
	const char *name = (const char *)sample->entry.name;
	struct kretry_policy policy;
	uint32_t id;
	int ret;

	ret = kretry_policy_open(k, name, sample->entry.open_flags & KRETRY_OPEN_GLOBAL, &id);
	if (ret < 0)
		return ret;
	sample->clock = CLOCK_MONOTONIC;
	if (kretry_policy_get(k, id, &policy) == 0)
		sample->clock = (clockid_t)policy.clockid;
	sample->stat = (struct kretry_stat) { .policy = id };
	ret = kretry_stat(k, &sample->stat);
	if (!ret && key) {
		sample->key = (struct kretry_stat) {
			.policy = id, .flags = KRETRY_SCOPE_KEY, .key = *key,
		};
		ret = kretry_stat(k, &sample->key);
	}
	kretry_policy_close(k, id);
	return ret;
}

static bool is_wanted(const struct options *o, const struct kretry_policy_entry *entry)
{
	int i;

	if (o->value[OPT_GLOBAL] && !(entry->open_flags & KRETRY_OPEN_GLOBAL))
		return false;
	for (i = 0; i < o->count; i++)
		if (!strcmp(o->args[i], (const char *)entry->name))
			return true;
	return !o->count;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int order = memcmp(x->entry.name, y->entry.name, KRETRY_NAME_MAX);

	return order ? order : (int)x->entry.open_flags - (int)y->entry.open_flags;
}

static int check_names(const struct options *o, const struct sample *samples, unsigned int count)
{
	unsigned int n;
	int i;

	for (i = 0; i < o->count; i++) {
		for (n = 0; n < count; n++)
			if (!strcmp(o->args[i], (const char *)samples[n].entry.name))
				break;
		if (n == count)
			return fail("no policy %s that may be looked at: see kretry policy list",
				    o->args[i]);
	}
	return 0;
}

/* Those that are gone since they were listed, or may not be looked at, are left out. */
static unsigned int look_at(struct kretry *k, const struct options *o, const uint64_t *key,
			    const struct kretry_policy_entry *entries, unsigned int count,
			    struct sample *samples)
{
	unsigned int i, taken = 0;

	for (i = 0; i < count; i++) {
		if (!is_wanted(o, &entries[i]))
			continue;
		samples[taken].entry = entries[i];
		if (take_sample(k, key, &samples[taken]) == 0)
			taken++;
	}
	return taken;
}

int take_samples(struct kretry *k, const struct options *o, struct sample **samples,
		 unsigned int *count)
{
	struct kretry_policy_entry *entries;
	uint64_t key = 0;
	int ret;

	if (o->value[OPT_KEY] && parse_key(o->value[OPT_KEY], &key))
		return EXIT_USAGE;
	ret = kretry_policy_list(k, &entries, count);
	if (ret < 0)
		return fail("%s", strerror(-ret));
	*samples = calloc(*count + 1, sizeof(**samples));
	if (*samples)
		*count = look_at(k, o, o->value[OPT_KEY] ? &key : NULL, entries, *count, *samples);
	free(entries);
	if (!*samples)
		return fail("%s", strerror(ENOMEM));
	qsort(*samples, *count, sizeof(**samples), compare_samples);
	ret = check_names(o, *samples, *count);
	if (ret)
		free(*samples);
	return ret;
}
