// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry policy apply: all the policies of files, at once. */

#include "command.h"

const char help_apply[] =
	"FILE...\n"
	"create all the policies of files\n"
	"\n"
	"A file is INI: [name], then KEY = VALUE; ; and # begin comments. A long table goes on in\n"
	"indented lines. - is the standard input. Of a directory all *.conf are read, in the order of\n"
	"their names; one that ends in / or .d need not be there. A name may come only once. Nothing\n"
	"is created if anything in any file is wrong; --dry-run only says what would be, with all that\n"
	"follows from what was set. --linger is for policies that do not say it; for what it means see\n"
	"kretry policy add --help. --replace frees a name that has other parameters and creates it\n"
	"anew; those who use the old policy keep it.\n"
	"\n"
	"With --hold the command stays until SIGINT or SIGTERM and holds the policies. It leaves one\n"
	"that exists with other parameters as it is and says so. At SIGHUP it reads the files again,\n"
	"creates what is new in them, and lets go of what is no longer there. It tells systemd when it\n"
	"is ready (Type=notify).\n"
	"\n"
	"  [payments]\n"
	"  preset = grpc\n"
	"  max_retries = 2\n"
	"  linger = 1h\n";

static void print_drafts(const struct policy_set *set)
{
	int i;

	for (i = 0; i < set->count; i++) {
		if (i)
			putchar('\n');
		params_print(&set->drafts[i].policy);
	}
}

int read_arguments(const struct options *o, struct policy_set *set)
{
	uint64_t linger = 0;
	const char *error = NULL;
	int i, ret;

	if (o->value[OPT_LINGER])
		error = parse_duration(o->value[OPT_LINGER], &linger);
	if (error)
		return usage_error("--linger: %s", error);
	ret = read_all_policies(o->args, o->count, set);
	for (i = 0; i < set->count; i++)
		if (!set->drafts[i].policy.linger_ns)
			set->drafts[i].policy.linger_ns = linger;
	return ret;
}

static int create_all(const struct options *o, struct kretry *k, struct policy_set *set)
{
	char name[SHOWN_NAME];
	int i, ret;

	for (i = 0; i < set->count; i++) {
		ret = create_policy(k, o, &set->drafts[i].policy);
		if (ret < 0)
			return fail("%s: %s", shown_name(set->drafts[i].policy.name, name),
				    why_not_created(ret));
	}
	return 0;
}

static int apply(const struct options *o, struct policy_set *set)
{
	struct kretry *k;
	int ret;

	if (!set->count && !o->value[OPT_HOLD])
		return 0;
	ret = open_module(o, &k);
	if (ret)
		return ret;
	ret = check_linger(k, o, set->drafts, set->count);
	if (!ret)
		ret = o->value[OPT_HOLD] ? hold_policies(o, k, set) : create_all(o, k, set);
	kretry_close(k);
	return ret;
}

int policy_apply(const struct options *o)
{
	struct policy_set set;
	int ret;

	/* One that comes early must not end us. */
	if (o->value[OPT_HOLD])
		block_signals();
	ret = read_arguments(o, &set);
	if (ret)
		return ret;
	if (o->value[OPT_DRY_RUN])
		print_drafts(&set);
	else
		ret = apply(o, &set);
	policy_set_free(&set);
	return ret;
}
