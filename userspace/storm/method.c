// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* How clients may sleep to their deadlines here. */
#include "storm.h"

#include <errno.h>

const char *storm_method_name(enum kretry_method method)
{
	return method == KRETRY_METHOD_BEST ? "best" : kretry_method_name(method);
}

static int ask(struct kretry *kretry, struct kretry_sched *sched, enum kretry_method wanted,
	       char *reason)
{
	int ret = kretry_sched_set_method(sched, wanted);

	if (ret && ret != -EOPNOTSUPP)
		storm_check(ret, "kretry_sched_set_method");
	if (!ret && !kretry_sched_ring(sched))
		storm_die("it needs io_uring: %s", kretry_sched_reason(sched));
	if (!ret)
		return (int)kretry_sched_method(sched);
	snprintf(reason, STORM_REASON_MAX, "%s", wanted == KRETRY_METHOD_WAIT ?
		 kretry_uring_reason(kretry) : "the module has no queue");
	return ret;
}

int storm_method(unsigned int open_flags, enum kretry_method wanted, char *reason)
{
	struct kretry_sched *sched;
	struct kretry *kretry;
	int ret;

	storm_check(kretry_open(&kretry, NULL, open_flags), "cannot open " KRETRY_DEVICE);
	storm_check(kretry_sched_init(&sched, kretry, NULL, 1), "kretry_sched_init");
	ret = ask(kretry, sched, wanted, reason);
	kretry_sched_exit(sched);
	kretry_close(kretry);
	return ret;
}
