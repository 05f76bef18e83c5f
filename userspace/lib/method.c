// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which of three ways the tasks sleep, and why not a better one. */

#include <errno.h>
#include <stdio.h>

#include "tasks.h"

static void say(struct kretry_sched *s, const char *reason)
{
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
}

/* One that is in use already is offered too. */
static int offers(struct kretry_sched *s, enum kretry_method method)
{
	switch (method) {
	case KRETRY_METHOD_TIMEOUT:
		return 0;
	case KRETRY_METHOD_WAIT:
		return s->ring && command_offers(s->k, KRETRY_FEATURE_URING_WAIT) ? 0 : -EOPNOTSUPP;
	case KRETRY_METHOD_QUEUE:
		if (!(s->k->features & KRETRY_FEATURE_QUEUE))
			return -EOPNOTSUPP;
		return s->method == method || queue_claim(s->k) ? 0 : -EBUSY;
	default:
		return -EINVAL;
	}
}

static void use(struct kretry_sched *s, enum kretry_method method)
{
	if (s->method == KRETRY_METHOD_QUEUE && method != KRETRY_METHOD_QUEUE)
		queue_release(s->k);
	s->method = method;
}

/* Where there is a ring, timeouts cost less than the queue; without one, the queue is the timer. */
void method_choose(struct kretry_sched *s)
{
	if (!offers(s, KRETRY_METHOD_WAIT)) {
		use(s, KRETRY_METHOD_WAIT);
		say(s, "");
	} else if (s->ring) {
		use(s, KRETRY_METHOD_TIMEOUT);
		say(s, kretry_uring_reason(s->k));
	} else {
		use(s, offers(s, KRETRY_METHOD_QUEUE) ? KRETRY_METHOD_TIMEOUT :
		    KRETRY_METHOD_QUEUE);
	}
}

/* The ring has refused a command. */
void method_fall_back(struct kretry_sched *s)
{
	if (s->method != KRETRY_METHOD_WAIT)
		return;
	use(s, KRETRY_METHOD_TIMEOUT);
	say(s, kretry_uring_reason(s->k));
	if (!s->reason[0])
		say(s, "io_uring refuses the device's commands: Permission denied");
}

static int read_switch(void)
{
	FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	int value = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

void method_no_ring(struct kretry_sched *s, int error)
{
	int disabled = read_switch();
	const char *cause = "a security policy, as of a container (seccomp), forbids it";

	if (error == ENOSYS)
		cause = "the kernel has none, or a container's policy (seccomp) hides it";
	if (disabled)
		snprintf(s->reason, sizeof(s->reason),
			 "io_uring_setup: kernel.io_uring_disabled is %d", disabled);
	else
		snprintf(s->reason, sizeof(s->reason), "io_uring_setup: %s: %s",
			 error == ENOSYS ? "Function not implemented" :
			 error == EACCES ? "Permission denied" : "Operation not permitted", cause);
}

/* -------- for callers -------- */

int kretry_sched_set_method(struct kretry_sched *s, enum kretry_method method)
{
	int ret;

	if (s->pending)
		return -EBUSY;
	if (method == KRETRY_METHOD_BEST) {
		method_choose(s);
		return 0;
	}
	ret = offers(s, method);
	if (ret < 0)
		return ret;
	use(s, method);
	if (s->ring)
		say(s, method == KRETRY_METHOD_WAIT ? "" : "the program asked for it");
	return 0;
}

enum kretry_method kretry_sched_method(const struct kretry_sched *s)
{
	return s->method;
}

const char *kretry_sched_reason(const struct kretry_sched *s)
{
	return s->reason;
}

const char *kretry_method_name(enum kretry_method method)
{
	switch (method) {
	case KRETRY_METHOD_TIMEOUT:
		return "timeout";
	case KRETRY_METHOD_QUEUE:
		return "queue";
	case KRETRY_METHOD_WAIT:
		return "wait";
	default:
		return "?";
	}
}
