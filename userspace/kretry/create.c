// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Named policies, made to stay. */

#include <errno.h>
#include <string.h>

#include "command.h"

const char *why_not_created(int error)
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
static int check_one(const struct options *o, const struct kretry_policy *policy, uint64_t most_ns)
{
	char name[SHOWN_NAME], most[UNIT_TEXT];

	shown_name(policy->name, name);
	if (!policy->linger_ns && !o->value[OPT_HOLD])
		return usage_error("%s would go with this command: give --linger 1h, or --hold",
				   name);
	if (policy->linger_ns > most_ns)
		return usage_error("%s: linger is at most %s", name,
				   format_duration(most_ns, most));
	return 0;
}

int check_linger(struct kretry *k, const struct options *o, const struct draft *drafts, int count)
{
	struct kretry_info info;
	int i, ret = 0;

	if (kretry_info(k, &info) < 0)
		info.max_linger_ns = KRETRY_NS_MAX;
	for (i = 0; i < count && !ret; i++)
		ret = check_one(o, &drafts[i].policy, info.max_linger_ns);
	return ret;
}

/* With --replace the name is taken from whoever has it; those who use that policy keep it. */
int create_policy(struct kretry *k, const struct options *o, struct kretry_policy *policy)
{
	int ret = kretry_policy_create(k, policy);

	if (ret != -EEXIST || !o->value[OPT_REPLACE])
		return ret;
	ret = kretry_policy_unlink(k, (const char *)policy->name,
				   policy->open_flags & KRETRY_OPEN_GLOBAL);
	return ret < 0 && ret != -ENOENT ? ret : kretry_policy_create(k, policy);
}
