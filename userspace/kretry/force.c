// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry force: an operator decides for a breaker. */

#include <errno.h>
#include <string.h>

#include "command.h"

const char help_force[] =
	"NAME MODE\n"
	"open or close a breaker by hand\n"
	"\n"
	"MODE is open (refuse everyone), closed (admit everyone, count nothing), metrics (count, but\n"
	"refuse nobody) or auto (by its rules again). With --key for one key, else for all keys of\n"
	"the policy, now and later. It is for the policy's owner and for root, and lasts as long as\n"
	"the policy does.\n";

static int parse_mode(const char *text, uint32_t *mode)
{
	const char *name;

	for (*mode = 0; (name = mode_name(*mode)); ++*mode)
		if (!strcmp(text, name))
			return 0;
	return usage_error("no mode %s", text);
}

static int force(struct kretry *k, const struct options *o, struct kretry_force *force)
{
	bool global;
	int ret = open_policy(k, o, o->args[0], &force->policy, &global);

	if (ret)
		return ret;
	ret = kretry_force(k, force);
	if (ret == -EINVAL)
		return fail("%s has no breaker", o->args[0]);
	if (ret == -EPERM)
		return fail("%s belongs to another user", o->args[0]);
	return ret < 0 ? fail("%s: %s", o->args[0], strerror(-ret)) : 0;
}

int verb_force(const struct options *o)
{
	struct kretry_force request = { 0 };
	struct kretry *k;
	uint64_t key = 0;
	int ret;

	if (parse_mode(o->args[1], &request.mode))
		return EXIT_USAGE;
	if (o->value[OPT_KEY]) {
		if (parse_key(o->value[OPT_KEY], &key))
			return EXIT_USAGE;
		request.flags = KRETRY_SCOPE_KEY;
		request.key = key;
	}
	ret = open_module(o, &k);
	if (ret)
		return ret;
	ret = force(k, o, &request);
	kretry_close(k);
	return ret;
}
