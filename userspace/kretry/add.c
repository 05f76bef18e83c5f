// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry policy add: a policy that stays when the command has gone. */

#include "command.h"

const char help_add[] =
	"NAME [KEY=VALUE...]\n"
	"create a named policy\n"
	"\n"
	"A named policy is there as long as a process has it open, and after that for as long as it\n"
	"lingers: --linger 1h (or linger=1h) keeps it for an hour after its last user, this command\n"
	"being the first. With --hold the command stays and holds it until SIGINT, SIGTERM or SIGHUP.\n"
	"If it exists with the same parameters it is left as it is, balances and breakers included.\n"
	"--preset is the same as the setting preset, --global as global=yes.\n";

static int create_one(const struct options *o, struct draft *draft)
{
	struct kretry *k;
	char name[SHOWN_NAME];
	int ret = open_module(o, &k);

	if (ret)
		return ret;
	ret = check_linger(k, o, draft, 1);
	if (!ret) {
		ret = create_policy(k, o, &draft->policy);
		if (ret < 0)
			ret = fail("%s: %s", shown_name(draft->policy.name, name),
				   why_not_created(ret));
		else if (o->value[OPT_HOLD])
			take_signal();
	}
	kretry_close(k);
	return ret;
}

/* Settings that have options of their own. */
static bool set_options(struct draft *draft, const struct options *o, struct problem *problem)
{
	if (o->value[OPT_PRESET] &&
	    !draft_set(draft, "preset", o->value[OPT_PRESET], 1, problem))
		return false;
	if (o->value[OPT_GLOBAL] && !draft_set(draft, "global", "yes", 1, problem))
		return false;
	return !o->value[OPT_LINGER] ||
	       draft_set(draft, "linger", o->value[OPT_LINGER], 1, problem);
}

int policy_add(const struct options *o)
{
	struct problem problem;
	struct draft draft;
	bool ok;
	int i;

	draft_init(&draft);
	ok = draft_set_name(&draft, o->args[0], &problem) && set_options(&draft, o, &problem);
	for (i = 1; ok && i < o->count; i++)
		ok = draft_set_pair(&draft, o->args[i], &problem);
	if (!ok || !draft_finish(&draft, &problem))
		return usage_error("%s%s%s", problem.key, *problem.key ? ": " : "", problem.text);
	if (o->value[OPT_HOLD])
		block_signals();
	return create_one(o, &draft);
}
