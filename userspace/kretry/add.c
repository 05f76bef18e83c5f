// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry policy add and apply: policies that stay when the command has gone. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

const char help_add[] =
	"NAME [KEY=VALUE...]\n"
	"create a named policy\n"
	"\n"
	"A named policy is there as long as a process has it open, and after that for as long as it\n"
	"lingers: --linger 1h (or linger=1h) keeps it for an hour after its last user, this command\n"
	"being the first. With --hold the command stays and holds it until it gets SIGINT or SIGTERM.\n"
	"If it exists with the same parameters it is left as it is, balances and breakers included.\n"
	"--preset is the same as the setting preset, --global as global=yes.\n";

const char help_apply[] =
	"FILE\n"
	"create all the policies of a file; - is the standard input\n"
	"\n"
	"The file is INI: [name], then KEY = VALUE; ; and # begin comments. A long table goes on in\n"
	"indented lines. Nothing is created if anything in the file is wrong; --dry-run only says what\n"
	"would be, with all that follows from what was set. --linger is for policies that do not say\n"
	"it; for what it and --hold mean see kretry policy add --help.\n"
	"\n"
	"  [payments]\n"
	"  preset = grpc\n"
	"  max_retries = 2\n"
	"  linger = 1h\n";

static const char *why(int error)
{
	switch (error) {
	case -EEXIST:
		return "exists with other parameters: kretry policy rm it first";
	case -EPERM:
		return "a global policy is for root to make";
	case -EDQUOT:
		return "as many policies as this user may have: remove some";
	}
	return strerror(-error);
}

/* One that would go with the command would only look as if it had been made. */
static int check_linger(struct kretry *k, const struct options *o,
			const struct kretry_policy *policy, const char *name)
{
	struct kretry_info info;
	char most[UNIT_TEXT];

	if (!policy->linger_ns && !o->value[OPT_HOLD])
		return usage_error("%s would go with this command: give --linger 1h, or --hold",
				   name);
	if (kretry_info(k, &info) == 0 && policy->linger_ns > info.max_linger_ns)
		return usage_error("%s: linger is at most %s", name,
				   format_duration(info.max_linger_ns, most));
	return 0;
}

static int create(struct kretry *k, const struct options *o, struct draft *drafts, int count)
{
	char name[SHOWN_NAME];
	int i, ret;

	for (i = 0; i < count; i++) {
		shown_name(drafts[i].policy.name, name);
		ret = check_linger(k, o, &drafts[i].policy, name);
		if (ret)
			return ret;
	}
	for (i = 0; i < count; i++) {
		ret = kretry_policy_create(k, &drafts[i].policy);
		if (ret < 0)
			return fail("%s: %s", shown_name(drafts[i].policy.name, name), why(ret));
	}
	return 0;
}

/* With --hold until a signal says otherwise; the policies are let go by the end of the process. */
static void hold(void)
{
	sigset_t signals;
	int signal;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	fflush(stdout);
	sigwait(&signals, &signal);
}

static int create_all(const struct options *o, struct draft *drafts, int count)
{
	struct kretry *k;
	int ret = open_module(o, &k);

	if (ret)
		return ret;
	ret = create(k, o, drafts, count);
	if (!ret && o->value[OPT_HOLD])
		hold();
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
	return create_all(o, &draft, 1);
}

static void print_drafts(const struct draft *drafts, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		if (i)
			putchar('\n');
		params_print(&drafts[i].policy);
	}
}

int policy_apply(const struct options *o)
{
	uint64_t linger = 0;
	const char *error = NULL;
	struct draft *drafts;
	int i, count, ret = 0;

	if (o->value[OPT_LINGER])
		error = parse_duration(o->value[OPT_LINGER], &linger);
	if (error)
		return usage_error("--linger: %s", error);
	count = read_policies(o->args[0], &drafts);
	if (count < 0)
		return -count;
	for (i = 0; i < count; i++)
		if (!drafts[i].policy.linger_ns)
			drafts[i].policy.linger_ns = linger;
	if (o->value[OPT_DRY_RUN])
		print_drafts(drafts, count);
	else
		ret = create_all(o, drafts, count);
	free(drafts);
	return ret;
}
