// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which policy: a private one from options, or a named one that others use too. */

#include <errno.h>
#include <string.h>

#include "run.h"

#define CONFIG		"/etc/kretry.d"
#define LINGER_NS	(3600 * NS_PER_S)

/* Options of the policy's parameters, and what they are called in a file. */
static const struct {
	enum option_id	option;
	const char	*name;
	const char	*key;
} parameters[] = {
	{ OPT_DELAY, "delay", "base" },
	{ OPT_MAX_DELAY, "max-delay", "cap" },
	{ OPT_FACTOR, "factor", "multiplier" },
	{ OPT_JITTER, "jitter", "jitter" },
	{ OPT_TOTAL, "total", "max_elapsed" },
	{ OPT_MAX_HINT, "max-hint", "hint_limit" },
};

/* -------- a private one -------- */

static void init_draft(struct draft *draft)
{
	draft_init(draft);
	draft->policy.backoff.base_ns = NS_PER_S;
	draft->policy.backoff.cap_ns = 60 * NS_PER_S;
	draft->policy.hint_limit_ns = 300 * NS_PER_S;
}

/* Attempts are one more than retries. */
static int set_attempts(struct draft *draft, const char *text, struct problem *problem)
{
	const char *error = NULL;
	uint64_t count = 0;
	char retries[24];

	if (!strcmp(text, "unlimited"))
		snprintf(retries, sizeof(retries), "unlimited");
	else
		error = parse_count(text, UINT32_MAX, &count);
	if (error)
		return usage_error("--attempts: %s", error);
	if (!count && *text != 'u')
		return usage_error("--attempts: 0 would never run it: write 1 for no retries");
	if (count)
		snprintf(retries, sizeof(retries), "%u", (unsigned int)(count - 1));
	if (!draft_set(draft, "max_retries", retries, 1, problem))
		return usage_error("--attempts: %s", problem->text);
	return 0;
}

static int set_parameters(struct draft *draft, const struct options *o, struct problem *problem)
{
	const char *value;
	size_t i;
	int ret = 0;

	if (o->value[OPT_PRESET] &&
	    !draft_set(draft, "preset", o->value[OPT_PRESET], 1, problem))
		return usage_error("--preset: %s", problem->text);
	if (o->value[OPT_ATTEMPTS])
		ret = set_attempts(draft, o->value[OPT_ATTEMPTS], problem);
	for (i = 0; !ret && i < ARRAY_SIZE(parameters); i++) {
		value = o->value[parameters[i].option];
		if (value && !draft_set(draft, parameters[i].key, value, 1, problem))
			ret = usage_error("--%s: %s", parameters[i].name, problem->text);
	}
	for (i = 0; !ret && i < (size_t)o->set_count; i++)
		if (!draft_set_pair(draft, o->sets[i], problem))
			ret = usage_error("%s: %s", problem->key, problem->text);
	return ret;
}

/* By the option's name if that is where it comes from. */
static int misfit(const struct options *o, const struct problem *problem)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parameters); i++)
		if (!strcmp(problem->key, parameters[i].key) && o->value[parameters[i].option])
			return usage_error("--%s: %s", parameters[i].name, problem->text);
	return usage_error("%s%s%s", problem->key, *problem->key ? ": " : "", problem->text);
}

static int make_draft(const struct run *r, struct draft *draft)
{
	struct kretry_policy *p = &draft->policy;
	struct problem problem;
	int ret;

	init_draft(draft);
	ret = set_parameters(draft, r->o, &problem);
	if (ret)
		return ret;
	if (!draft_finish(draft, &problem))
		return misfit(r->o, &problem);
	if (p->open_flags || p->linger_ns)
		return usage_error("%s: only for a policy with a name",
				   p->open_flags ? "global" : "linger");
	p->flags |= KRETRY_POLICY_ASSUME_IDEMPOTENT;
	if (r->set.once_only)
		p->flags &= ~(uint32_t)KRETRY_POLICY_ASSUME_IDEMPOTENT;
	return 0;
}

static int create_private(struct run *r, struct draft *draft)
{
	int ret = kretry_policy_create(r->k, &draft->policy);

	if (ret < 0) {
		fail("%s", ret == -EINVAL ? "these settings do not fit together" : strerror(-ret));
		return EXIT_OWN;
	}
	r->policy = draft->policy;
	return 0;
}

/* -------- a named one -------- */

static int check_options(const struct options *o)
{
	size_t i;

	if (o->value[OPT_PRESET] || o->set_count || o->value[OPT_ATTEMPTS])
		return usage_error("--policy has its own parameters: not with --%s",
				   o->set_count ? "set" : o->value[OPT_PRESET] ? "preset" :
				   "attempts");
	for (i = 0; i < ARRAY_SIZE(parameters); i++)
		if (o->value[parameters[i].option])
			return usage_error("--policy has its own parameters: not with --%s",
					   parameters[i].name);
	return 0;
}

/* The user's own, or a global one. */
static int open_named(struct run *r, const char *name)
{
	int ret = kretry_policy_open(r->k, name, 0, &r->policy.id);

	if (ret == -ENOENT)
		ret = kretry_policy_open(r->k, name, KRETRY_OPEN_GLOBAL, &r->policy.id);
	return ret;
}

/* As many runs, one after the other, are one program's: it has to outlive each. */
static void set_linger(struct run *r, struct kretry_policy *policy)
{
	struct kretry_info info;

	if (policy->linger_ns || kretry_info(r->k, &info) < 0)
		return;
	policy->linger_ns = info.max_linger_ns < LINGER_NS ? info.max_linger_ns : LINGER_NS;
}

/* Somebody else may have made it meanwhile, from another file. */
static int create_named(struct run *r, const char *name, struct draft *draft)
{
	int ret;

	set_linger(r, &draft->policy);
	ret = kretry_policy_create(r->k, &draft->policy);
	if (!ret)
		r->policy.id = draft->policy.id;
	return ret == -EEXIST ? open_named(r, name) : ret;
}

/* A global policy that root has not made yet must not keep the command from running. */
static int decide_here(struct run *r, struct draft *draft)
{
	char shown[SHOWN_NAME];
	int ret;

	complain(r, "%s: only root makes a global policy: decided in this process",
		 shown_name(draft->policy.name, shown));
	kretry_close(r->k);
	ret = kretry_open(&r->k, NULL, KRETRY_PROCESS_ONLY);
	if (ret < 0)
		r->k = NULL;
	if (!ret)
		ret = kretry_policy_create(r->k, &draft->policy);
	r->policy.id = draft->policy.id;
	return ret;
}

static int find_named(struct run *r, const char *name)
{
	const char *dir = r->o->value[OPT_CONFIG] ? r->o->value[OPT_CONFIG] : CONFIG;
	bool module = kretry_backend(r->k) == KRETRY_BACKEND_MODULE;
	struct draft draft;
	char shown[SHOWN_NAME];
	int found, ret = open_named(r, name);

	if (ret == -ENOENT) {
		found = config_find(dir, name, &draft);
		if (found < 0)
			return EXIT_OWN;
		if (found)
			ret = create_named(r, name, &draft);
		if (ret == -EPERM)
			ret = decide_here(r, &draft);
	}
	if (!ret)
		ret = kretry_policy_get(r->k, r->policy.id, &r->policy);
	if (!ret)
		return 0;
	shown_name((const unsigned char *)name, shown);
	if (ret == -ENOENT)
		fail("no policy %s: write a section [%s] into %s/NAME.conf%s", shown, shown, dir,
		     module ? ", or see kretry policy list" : "");
	else
		fail("%s: %s", shown, strerror(-ret));
	return EXIT_OWN;
}

/* -------- either -------- */

static int open_device(struct run *r)
{
	int ret = kretry_open(&r->k, r->o->value[OPT_DEVICE], 0);

	if (ret < 0) {
		fail("%s", strerror(-ret));
		return EXIT_OWN;
	}
	return 0;
}

int choose_policy(struct run *r)
{
	const char *name = r->o->value[OPT_POLICY];
	struct problem problem;
	struct draft draft;
	int ret;

	if (name)
		ret = check_options(r->o);
	else if (r->o->value[OPT_CONFIG])
		ret = usage_error("--config is for --policy");
	else
		ret = make_draft(r, &draft);
	if (!ret && name && !draft_set_name(&(struct draft) { 0 }, name, &problem))
		ret = usage_error("--policy: %s", problem.text);
	if (!ret)
		ret = open_device(r);
	if (!ret)
		ret = name ? find_named(r, name) : create_private(r, &draft);
	return ret;
}
