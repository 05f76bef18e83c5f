// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry policy list, show, rm and presets. */

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static int compare_entries(const void *a, const void *b)
{
	const struct kretry_policy_entry *x = a, *y = b;
	int order = memcmp(x->name, y->name, KRETRY_NAME_MAX);

	return order ? order : (int)x->open_flags - (int)y->open_flags;
}

static void print_entry(const struct kretry_policy_entry *entry)
{
	char name[SHOWN_NAME], mode[8] = "-";

	if (entry->open_flags & KRETRY_OPEN_GLOBAL)
		snprintf(mode, sizeof(mode), "%04o", entry->mode);
	printf("%-24s %-7s %5u %5u %-5s %7u %7u\n", shown_name(entry->name, name),
	       entry->open_flags & KRETRY_OPEN_GLOBAL ? "global" : "private", entry->uid,
	       entry->gid, mode, entry->openers, entry->keys);
}

static json_t *entry_json(const struct kretry_policy_entry *entry)
{
	char name[SHOWN_NAME];

	return json_pack("{s:s, s:b, s:i, s:i, s:i, s:i, s:i}", "name",
			 shown_name(entry->name, name), "global",
			 (int)(entry->open_flags & KRETRY_OPEN_GLOBAL), "uid", (int)entry->uid,
			 "gid", (int)entry->gid, "mode", (int)entry->mode, "openers",
			 (int)entry->openers, "keys", (int)entry->keys);
}

int policy_list(const struct options *o)
{
	struct kretry_policy_entry *entries;
	unsigned int count, i;
	struct kretry *k;
	json_t *json;
	int ret = open_module(o, &k);

	if (ret)
		return ret;
	ret = kretry_policy_list(k, &entries, &count);
	kretry_close(k);
	if (ret < 0)
		return fail("%s", strerror(-ret));
	qsort(entries, count, sizeof(*entries), compare_entries);
	json = json_array();
	if (!o->value[OPT_JSON])
		puts("NAME                     SCOPE     UID   GID MODE  OPENERS    KEYS");
	for (i = 0; i < count; i++) {
		if (o->value[OPT_JSON])
			json_array_append_new(json, entry_json(&entries[i]));
		else
			print_entry(&entries[i]);
	}
	if (o->value[OPT_JSON])
		print_json(json);
	else
		json_decref(json);
	free(entries);
	return 0;
}

static int get_policy(const struct options *o, struct kretry_policy *policy)
{
	struct kretry *k;
	uint32_t id;
	bool global;
	int ret = open_module(o, &k);

	if (ret)
		return ret;
	ret = open_policy(k, o, o->args[0], &id, &global);
	if (!ret && kretry_policy_get(k, id, policy) < 0)
		ret = fail("%s: its mode does not allow it to be read", o->args[0]);
	kretry_close(k);
	return ret;
}

static int get_preset(const struct options *o, struct kretry_policy *policy)
{
	const char *name = o->value[OPT_PRESET];

	if (kretry_preset(name, policy) < 0)
		return usage_error("no preset %s: see kretry policy presets", name);
	snprintf((char *)policy->name, sizeof(policy->name), "%s", name);
	return 0;
}

int policy_show(const struct options *o)
{
	struct kretry_policy policy;
	int ret;

	if (!o->value[OPT_PRESET] == !o->count)
		return usage_error("a policy's name, or --preset: one of them");
	ret = o->count ? get_policy(o, &policy) : get_preset(o, &policy);
	if (ret)
		return ret;
	if (o->value[OPT_JSON]) {
		print_json(params_json(&policy));
		return 0;
	}
	params_print(&policy);
	return 0;
}

int policy_rm(const struct options *o)
{
	unsigned int flags = o->value[OPT_GLOBAL] ? KRETRY_OPEN_GLOBAL : 0;
	struct kretry *k;
	int i, error, ret = open_module(o, &k);

	if (ret)
		return ret;
	for (i = 0; i < o->count; i++) {
		error = kretry_policy_unlink(k, o->args[i], flags);
		if (error == -ENOENT)
			ret = fail("no policy %s: see kretry policy list", o->args[i]);
		else if (error < 0)
			ret = fail("%s: %s", o->args[i], strerror(-error));
	}
	kretry_close(k);
	return ret;
}

static void print_preset(const char *name, const struct kretry_policy *p)
{
	char base[UNIT_TEXT], cap[UNIT_TEXT], retries[16] = "any number of";

	if (p->max_retries != KRETRY_NO_LIMIT)
		snprintf(retries, sizeof(retries), "%u", p->max_retries);
	printf("%-14s %s %s, delays from %s to %s%s%s\n", name, retries,
	       p->max_retries == 1 ? "retry" : "retries",
	       format_duration(p->backoff.base_ns, base), format_duration(p->backoff.cap_ns, cap),
	       p->budget.capacity_utok ? ", budget" : "", p->breaker.probes ? ", breaker" : "");
}

int policy_presets(const struct options *o)
{
	json_t *json = json_array();
	struct kretry_policy policy;
	const char *name;
	unsigned int i;

	for (i = 0; (name = kretry_preset_name(i)); i++) {
		kretry_preset(name, &policy);
		snprintf((char *)policy.name, sizeof(policy.name), "%s", name);
		if (o->value[OPT_JSON])
			json_array_append_new(json, params_json(&policy));
		else
			print_preset(name, &policy);
	}
	if (o->value[OPT_JSON])
		print_json(json);
	else
		json_decref(json);
	return 0;
}
