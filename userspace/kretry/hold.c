// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Policies that are held for as long as the command runs, as a service does. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"

struct held {
	struct kretry_policy	policy;		/* as it was asked for */
	uint32_t		id;
	bool			is_other;	/* it has other parameters, of who came first */
	bool			is_wanted;
};

struct holder {
	const struct options	*o;
	struct kretry		*k;
	struct held		*held;
	int			count;
};

static void signals_of_ours(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGHUP);
}

void block_signals(void)
{
	sigset_t signals;

	signals_of_ours(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

int take_signal(void)
{
	sigset_t signals;
	int signal = SIGTERM;

	signals_of_ours(&signals);
	fflush(stdout);
	sigwait(&signals, &signal);
	return signal;
}

static unsigned int scope(const struct kretry_policy *policy)
{
	return policy->open_flags & KRETRY_OPEN_GLOBAL;
}

static struct held *find(struct holder *h, const struct kretry_policy *policy)
{
	int i;

	for (i = 0; i < h->count; i++)
		if (scope(&h->held[i].policy) == scope(policy) &&
		    !strcmp((char *)h->held[i].policy.name, (const char *)policy->name))
			return &h->held[i];
	return NULL;
}

static void say(const struct kretry_policy *policy, const char *what)
{
	char name[SHOWN_NAME];

	fprintf(stderr, "kretry: %s: %s\n", shown_name(policy->name, name), what);
}

/* Under its name is another: that is held. Unless it was ours already. */
static int take_other(struct holder *h, struct held *held)
{
	int ret = 0;

	if (!held->id)
		ret = kretry_policy_open(h->k, (char *)held->policy.name, scope(&held->policy),
					 &held->id);
	if (ret < 0) {
		say(&held->policy, why_not_created(ret));
		return EXIT_FAILED;
	}
	say(&held->policy, "exists with other parameters, which it keeps without --replace");
	held->is_other = true;
	return 0;
}

/* Into @held, which is new or has what was under this name until now. */
static int take(struct holder *h, struct held *held, const struct kretry_policy *asked)
{
	struct kretry_policy policy = *asked;
	int ret = create_policy(h->k, h->o, &policy);

	held->policy = *asked;
	if (ret == -EEXIST)
		return take_other(h, held);
	if (ret < 0) {
		say(asked, why_not_created(ret));
		return EXIT_FAILED;
	}
	if (held->id && held->id != policy.id)
		kretry_policy_close(h->k, held->id);
	held->id = policy.id;
	held->is_other = false;
	return 0;
}

static int want(struct holder *h, const struct kretry_policy *asked)
{
	struct held *held = find(h, asked), *larger;
	int ret;

	if (held) {
		held->is_wanted = true;
		if (!held->is_other && !memcmp(&held->policy, asked, sizeof(*asked)))
			return 0;
		return take(h, held, asked);
	}
	larger = realloc(h->held, (size_t)(h->count + 1) * sizeof(*larger));
	if (!larger) {
		say(asked, strerror(ENOMEM));
		return EXIT_FAILED;
	}
	h->held = larger;
	held = memset(&h->held[h->count], 0, sizeof(*held));
	held->is_wanted = true;
	ret = take(h, held, asked);
	h->count += !ret;
	return ret;
}

static void drop_unwanted(struct holder *h)
{
	int i, kept = 0;

	for (i = 0; i < h->count; i++) {
		if (h->held[i].is_wanted)
			h->held[kept++] = h->held[i];
		else
			kretry_policy_close(h->k, h->held[i].id);
	}
	h->count = kept;
}

/* What can be done is done, whatever becomes of the rest; the exit status. */
static int take_all(struct holder *h, const struct policy_set *set)
{
	int i, ret = 0;

	for (i = 0; i < h->count; i++)
		h->held[i].is_wanted = false;
	for (i = 0; i < set->count; i++)
		if (want(h, &set->drafts[i].policy))
			ret = EXIT_FAILED;
	drop_unwanted(h);
	return ret;
}

/* Files that are wrong change nothing. */
static void reload(struct holder *h)
{
	struct policy_set set;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64, now.tv_sec * INT64_C(1000000) +
	       now.tv_nsec / 1000);
	if (read_arguments(h->o, &set) == 0) {
		if (check_linger(h->k, h->o, set.drafts, set.count) == 0)
			take_all(h, &set);
		policy_set_free(&set);
	}
	notify("READY=1\nSTATUS=%d policies", h->count);
}

int hold_policies(const struct options *o, struct kretry *k, struct policy_set *set)
{
	struct holder h = { .o = o, .k = k };
	int ret = take_all(&h, set);

	if (!ret) {
		notify("READY=1\nSTATUS=%d policies", h.count);
		while (take_signal() == SIGHUP)
			reload(&h);
		notify("STOPPING=1");
	}
	free(h.held);
	return ret;
}
