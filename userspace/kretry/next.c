// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry next: one decision, for a script that keeps count of its attempts itself. */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "command.h"

const char help_next[] =
	"[NAME | KEY=VALUE...]\n"
	"ask for a deadline\n"
	"\n"
	"Reports that attempt N (0: the first one) has failed, and prints the verdict, the delay and\n"
	"the deadline on the policy's clock. The policy is the one called NAME, whose budget and\n"
	"breaker then count the report, or one made of --preset and settings for this decision only;\n"
	"without the module it is decided in the process.\n"
	"\n"
	"--event is transient (the default), throttled, unknown, permanent, ok, cancelled or begin.\n"
	"--hint is what the server asked for, --no-retry that it said no, --elapsed how long ago the\n"
	"operation began, --previous the last delay (strategy decorrelated), --idempotent that a retry\n"
	"does no harm. It exits with 0 for go, retry and done, with 3 if the verdict is to stop.\n";

static bool is_setting(const char *text)
{
	return strchr(text, '=');
}

static int make_policy(struct kretry *k, const struct options *o, uint32_t *id, clockid_t *clock)
{
	struct problem problem;
	struct draft draft;
	bool ok = true;
	int i, ret;

	draft_init(&draft);
	if (o->value[OPT_PRESET])
		ok = draft_set(&draft, "preset", o->value[OPT_PRESET], 1, &problem);
	for (i = 0; ok && i < o->count; i++)
		ok = draft_set_pair(&draft, o->args[i], &problem);
	if (!ok || !draft_finish(&draft, &problem))
		return usage_error("%s%s%s", problem.key, *problem.key ? ": " : "", problem.text);
	ret = kretry_policy_create(k, &draft.policy);
	if (ret < 0)
		return fail("%s", strerror(-ret));
	*id = draft.policy.id;
	*clock = (clockid_t)draft.policy.clockid;
	return 0;
}

static int find_policy(struct kretry *k, const struct options *o, uint32_t *id, clockid_t *clock)
{
	struct kretry_policy policy;
	bool global;
	int ret;

	if (o->count != 1 || o->value[OPT_PRESET])
		return usage_error("a policy's name, or a preset and settings: not both");
	if (kretry_backend(k) != KRETRY_BACKEND_MODULE)
		return fail("%s", kretry_backend_reason(k));
	ret = open_policy(k, o, o->args[0], id, &global);
	if (ret)
		return ret;
	*clock = CLOCK_MONOTONIC;
	if (kretry_policy_get(k, *id, &policy) == 0)
		*clock = (clockid_t)policy.clockid;
	return 0;
}

static int parse_event(const char *text, struct kretry_op *op)
{
	unsigned int event;

	for (event = KRETRY_EVENT_BEGIN; event <= KRETRY_EVENT_PERMANENT; event++)
		if (!strcmp(text, kretry_event_name(event)))
			break;
	if (event > KRETRY_EVENT_PERMANENT)
		return usage_error("no event %s", text);
	op->event = (uint8_t)event;
	return 0;
}

/* The op as it would be if the caller had kept it. */
static int fill_op(const struct options *o, struct kretry_op *op, clockid_t clock)
{
	uint64_t attempt = 0, elapsed = 0, previous = 0, now = kretry_now(clock);
	const char *error = NULL;
	uint64_t key = 0;

	if (o->value[OPT_ATTEMPT])
		error = parse_count(o->value[OPT_ATTEMPT], UINT32_MAX, &attempt);
	if (error)
		return usage_error("--attempt: %s", error);
	if (parse_event(o->value[OPT_EVENT] ? o->value[OPT_EVENT] : "transient", op) ||
	    take_duration(o, OPT_HINT, "hint", (uint64_t *)&op->hint_ns) ||
	    take_duration(o, OPT_ELAPSED, "elapsed", &elapsed) ||
	    take_duration(o, OPT_PREVIOUS, "previous", &previous) ||
	    (o->value[OPT_KEY] && parse_key(o->value[OPT_KEY], &key)))
		return EXIT_USAGE;
	op->attempt = (uint32_t)attempt;
	op->key = key;
	op->delay_ns = previous;
	if (elapsed)
		op->start_ns = now > elapsed ? now - elapsed : 1;
	if (o->value[OPT_HINT])
		op->flags |= KRETRY_OP_HINT;
	if (o->value[OPT_NO_RETRY])
		op->flags |= KRETRY_OP_NO_RETRY;
	if (o->value[OPT_IDEMPOTENT])
		op->flags |= KRETRY_OP_IDEMPOTENT;
	return 0;
}

/* To three decimals, up: the deadline is what counts. */
static const char *rounded(uint64_t ns, char *text)
{
	uint64_t step = ns > 1000000000 ? 1000000 : ns > 1000000 ? 1000 : 1;

	if (ns <= KRETRY_NS_MAX - step)
		ns = (ns + step - 1) / step * step;
	return format_duration(ns, text);
}

static void print_op(const struct kretry_op *op, clockid_t clock, uint64_t delay)
{
	char text[UNIT_TEXT];

	printf("verdict  %s\n", kretry_verdict_name(op->verdict));
	if (!op->deadline_ns)
		return;
	printf("delay    %s\n", rounded(delay, text));
	printf("deadline %" PRIu64 ".%09" PRIu64 " %s\n", (uint64_t)op->deadline_ns / 1000000000,
	       (uint64_t)op->deadline_ns % 1000000000,
	       clock == CLOCK_BOOTTIME ? "boottime" : "monotonic");
}

static json_t *op_json(struct kretry *k, const struct kretry_op *op, clockid_t clock,
		       uint64_t delay)
{
	bool module = kretry_backend(k) == KRETRY_BACKEND_MODULE;
	json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:b, s:b}",
				 "verdict", kretry_verdict_name(op->verdict),
				 "backend", module ? "module" : "process",
				 "clock", clock == CLOCK_BOOTTIME ? "boottime" : "monotonic",
				 "attempt", (json_int_t)op->attempt,
				 "stop", kretry_is_stop(op->verdict),
				 "probe", (op->flags & KRETRY_OP_PROBE) != 0);

	if (op->deadline_ns) {
		json_object_set_new(json, "delay_ns", json_integer((json_int_t)delay));
		json_object_set_new(json, "deadline_ns",
				    json_integer((json_int_t)op->deadline_ns));
	}
	return json;
}

static int decide(struct kretry *k, const struct options *o)
{
	struct kretry_op op = { 0 };
	clockid_t clock;
	uint32_t id;
	uint64_t now, delay;
	bool named = o->count && !is_setting(o->args[0]);
	int ret = named ? find_policy(k, o, &id, &clock) : make_policy(k, o, &id, &clock);

	if (!ret)
		ret = fill_op(o, &op, clock);
	if (ret)
		return ret;
	op.policy = id;
	now = kretry_now(clock);
	ret = kretry_step(k, &op);
	if (ret < 0)
		return ret == -EINVAL ? usage_error("hints are for failures only") :
					fail("%s", strerror(-ret));
	delay = op.verdict == KRETRY_RETRY ? op.delay_ns :
		op.deadline_ns > now ? op.deadline_ns - now : 0;
	if (o->value[OPT_JSON])
		print_json(op_json(k, &op, clock, delay));
	else
		print_op(&op, clock, delay);
	return kretry_is_stop(op.verdict) ? EXIT_STOP : 0;
}

int verb_next(const struct options *o)
{
	struct kretry *k;
	int ret = open_any(o, &k);

	if (ret)
		return ret;
	ret = decide(k, o);
	kretry_close(k);
	return ret;
}
