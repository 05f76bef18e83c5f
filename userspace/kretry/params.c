// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The table of a policy's parameters, and their values as text. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "params.h"

static const char *const strategies[] = {
	[KRETRY_FIXED] = "fixed", [KRETRY_LINEAR] = "linear",
	[KRETRY_EXPONENTIAL] = "exponential", [KRETRY_DECORRELATED] = "decorrelated",
	[KRETRY_SLOTTED] = "slotted", [KRETRY_TABLE] = "table", NULL
};

static const char *const jitters[] = {
	[KRETRY_JITTER_NONE] = "none", [KRETRY_JITTER_FULL] = "full",
	[KRETRY_JITTER_EQUAL] = "equal", [KRETRY_JITTER_PROPORTIONAL] = "proportional",
	[KRETRY_JITTER_ADDITIVE] = "additive", NULL
};

static const char *const throttled[] = {
	[KRETRY_THROTTLED_IGNORED] = "ignored", [KRETRY_THROTTLED_SUCCESS] = "success",
	[KRETRY_THROTTLED_FAILURE] = "failure", NULL
};

static const char *const clocks[] = {
	"", "monotonic", "", "", "", "", "", "boottime", NULL
};

#define AT(field)	offsetof(struct kretry_policy, field)
#define DURATION(key, field, help)	{ key, KIND_DURATION, 0, AT(field), NULL, help }
#define TOKENS(key, field, help)	{ key, KIND_TOKENS, 0, AT(budget.field), NULL, help }
#define RATIO(key, field, help)		{ key, KIND_RATIO, 0, AT(field), NULL, help }
#define FACTOR(key, field, help)	{ key, KIND_FACTOR, 0, AT(field), NULL, help }
#define COUNT(key, max, field, help)	{ key, KIND_COUNT, max, AT(field), NULL, help }
#define FLAG(key, bit, field, help)	{ key, KIND_FLAG, bit, AT(field), NULL, help }
#define NAME8(key, field, names, help)	{ key, KIND_NAME8, 0, AT(field), names, help }

const struct param params[] = {
	{ "max_retries", KIND_LIMIT, 0, AT(max_retries), NULL,
	  "retries after the first attempt, or unlimited" },
	DURATION("max_elapsed", max_elapsed_ns, "no retry starts later than this; 0: any time"),
	DURATION("reset_after", reset_after_ns, "success sooner than this keeps the backoff"),
	DURATION("slack", slack_ns, "how late the kernel may deliver a queued operation"),
	{ "clock", KIND_NAME32, 0, AT(clockid), clocks, "monotonic, or boottime" },
	DURATION("linger", linger_ns, "how long the policy outlives its last opener"),

	NAME8("strategy", backoff.strategy, strategies,
	      "fixed, linear, exponential, decorrelated, slotted, table"),
	DURATION("base", backoff.base_ns, "the first delay"),
	DURATION("base_throttled", backoff.base_throttled_ns, "the same after throttling; 0: base"),
	DURATION("cap", backoff.cap_ns, "no delay is above it"),
	DURATION("floor", backoff.floor_ns, "no delay is below it"),
	FACTOR("multiplier", backoff.multiplier_ppm, "of strategy exponential: 2"),
	{ "table", KIND_TABLE, 0, AT(backoff.table_ns), NULL,
	  "of strategy table: 1s, 2s, 4s; the last repeats" },
	NAME8("jitter", backoff.jitter, jitters, "none, full, equal, proportional, additive"),
	RATIO("jitter_ratio", backoff.jitter_ppm, "of jitter proportional and additive: 20%"),

	DURATION("hint_limit", hint_limit_ns, "a hint above it stops; 0: no limit"),
	DURATION("hint_over_own", hint_over_own_ns, "a hint counts up to the own delay and this"),
	FLAG("hint_clamp", KRETRY_POLICY_HINT_CLAMP, flags, "cut a hint down to hint_limit"),
	FLAG("hint_max", KRETRY_POLICY_HINT_MAX, flags, "never sooner than the own delay either"),
	FLAG("hint_exact", KRETRY_POLICY_HINT_EXACT, flags, "the hint as it is, without spread"),
	FLAG("hint_shared", KRETRY_POLICY_HINT_SHARED, flags, "a hint cools the key for all"),
	FLAG("assume_idempotent", KRETRY_POLICY_ASSUME_IDEMPOTENT, flags,
	     "unknown outcomes may be retried"),

	TOKENS("budget.capacity", capacity_utok, "most tokens; 0: no budget"),
	TOKENS("budget.initial", initial_utok, "tokens at first (capacity)"),
	TOKENS("budget.reserve_cap", reserve_cap_utok, "the reserve refills up to here (initial)"),
	TOKENS("budget.refill_per_s", refill_utok_per_s, "refill of the reserve"),
	TOKENS("budget.deposit_request", deposit_request_utok, "by an operation's first attempt"),
	TOKENS("budget.deposit_first_success", deposit_first_success_utok,
	       "by success of a first attempt"),
	TOKENS("budget.deposit_retry_success", deposit_retry_success_utok, "by success of a retry"),
	TOKENS("budget.drain_per_failure", drain_per_failure_utok, "taken by each failure"),
	TOKENS("budget.cost_transient", cost_transient_utok, "of a retry after TRANSIENT (1)"),
	TOKENS("budget.cost_throttled", cost_throttled_utok, "after THROTTLED (1)"),
	TOKENS("budget.cost_unknown", cost_unknown_utok, "after UNKNOWN (1)"),
	TOKENS("budget.admit_above", admit_above_utok, "a retry needs more tokens than this"),
	DURATION("budget.window", budget.window_ns, "deposits lapse after this; 0: never"),
	FLAG("budget.refund_last", KRETRY_BUDGET_REFUND_LAST, budget.flags,
	     "success returns the cost of the last retry"),

	COUNT("breaker.consecutive", 65535, breaker.consecutive, "opens at so many in a row"),
	RATIO("breaker.ratio", breaker.ratio_ppm, "opens at this share of failures"),
	RATIO("breaker.slow_ratio", breaker.slow_ppm, "opens at this share of slow calls"),
	DURATION("breaker.slow", breaker.slow_ns, "a call that took longer is slow"),
	COUNT("breaker.min_calls", 0, breaker.min_calls, "results that the ratios need"),
	DURATION("breaker.window", breaker.window_ns, "of the ratios, by time"),
	COUNT("breaker.window_calls", 0, breaker.window_calls, "of the ratios, by results"),
	{ "breaker.min_reporters", KIND_COUNT8, 8, AT(breaker.min_reporters), NULL,
	  "processes that failures must come from" },
	FLAG("breaker.reporters_uid", KRETRY_BREAKER_REPORTERS_UID, breaker.flags,
	     "count users, not processes"),
	NAME8("breaker.throttled", breaker.throttled, throttled,
	      "ignored, or counted as success or failure"),
	NAME8("breaker.throttled_half_open", breaker.throttled_half_open, throttled,
	      "the same while half-open"),
	DURATION("breaker.open", breaker.open_ns, "how long it stays open"),
	DURATION("breaker.open_cap", breaker.open_cap_ns, "most it grows to (open)"),
	FACTOR("breaker.open_growth", breaker.open_growth_ppm, "as long as probes fail"),
	RATIO("breaker.open_jitter", breaker.open_jitter_ppm, "longer by up to this share"),
	COUNT("breaker.probes", 255, breaker.probes, "admitted while half-open (1)"),
	DURATION("breaker.probe_timeout", breaker.probe_timeout_ns, "then a probe is lost (1m)"),
	COUNT("breaker.successes_to_close", 255, breaker.successes_to_close, "by probes (1)"),
	RATIO("breaker.half_open_ratio", breaker.half_open_ppm,
	      "judge all probes by this share of failures"),
	DURATION("breaker.ramp", breaker.ramp_ns, "after closing, admit all only by then"),
	FLAG("breaker.metrics_only", KRETRY_BREAKER_METRICS_ONLY, breaker.flags,
	     "count, but refuse nobody"),
	FLAG("breaker.wait_open", KRETRY_POLICY_WAIT_OPEN, flags, "retries wait for it"),

	DURATION("pacing.every", pacing.pace_ns, "least time between two retries of a key"),
	DURATION("pacing.horizon", pacing.horizon_ns, "a slot further away stops (1m)"),
	FLAG("pacing.all", KRETRY_POLICY_PACE_ALL, flags, "first attempts too"),

	FLAG("global", KRETRY_OPEN_GLOBAL, open_flags, "the name is the host's; for root"),
	COUNT("uid", 0, uid, "owner of a global policy"),
	COUNT("gid", 0, gid, "group of a global policy"),
	{ "mode", KIND_MODE, 0666, AT(mode), NULL,
	  "of a global policy: read is look, write is use (0666)" },
};

const unsigned int params_count = ARRAY_SIZE(params);

_Static_assert(ARRAY_SIZE(params) <= PARAMS_MAX, "a draft has no room for all");

uint64_t param_get(const struct param *param, const struct kretry_policy *policy)
{
	const void *at = (const char *)policy + param->offset;

	switch (param->kind) {
	case KIND_DURATION:
	case KIND_TOKENS:
		return *(const uint64_t *)at;
	case KIND_TABLE:
		return policy->backoff.table_len;
	case KIND_COUNT8:
	case KIND_NAME8:
		return *(const uint8_t *)at;
	case KIND_FLAG:
		return (*(const uint32_t *)at & param->bit) != 0;
	default:
		return *(const uint32_t *)at;
	}
}

void param_put(const struct param *param, struct kretry_policy *policy, uint64_t value)
{
	void *at = (char *)policy + param->offset;
	uint32_t flags;

	switch (param->kind) {
	case KIND_DURATION:
	case KIND_TOKENS:
		*(uint64_t *)at = value;
		break;
	case KIND_COUNT8:
	case KIND_NAME8:
		*(uint8_t *)at = (uint8_t)value;
		break;
	case KIND_FLAG:
		flags = *(uint32_t *)at & ~param->bit;
		*(uint32_t *)at = value ? flags | param->bit : flags;
		break;
	default:
		*(uint32_t *)at = (uint32_t)value;
	}
}

/* A line of a file has room for so many of the longest. */
#define TABLE_LINE	7

/* It goes on in indented lines, as in a file. */
static const char *table_text(const struct kretry_policy *policy, char *text)
{
	char one[UNIT_TEXT];
	const char *between = "";
	size_t used = 0;
	unsigned int i;

	*text = '\0';
	for (i = 0; i < policy->backoff.table_len; i++) {
		used += (size_t)snprintf(text + used, PARAM_TEXT - used, "%s%s", between,
					 format_duration(policy->backoff.table_ns[i], one));
		between = (i + 1) % TABLE_LINE ? ", " : ",\n\t";
	}
	return text;
}

const char *param_text(const struct param *param, const struct kretry_policy *policy, char *text)
{
	uint64_t value = param_get(param, policy);

	switch (param->kind) {
	case KIND_DURATION:
		return format_duration(value, text);
	case KIND_TOKENS:
	case KIND_RATIO:
	case KIND_FACTOR:
		return format_millionths(value, text);
	case KIND_NAME8:
	case KIND_NAME32:
		return param->names[value];
	case KIND_FLAG:
		return value ? "yes" : "no";
	case KIND_TABLE:
		return table_text(policy, text);
	case KIND_LIMIT:
		if (value == KRETRY_NO_LIMIT)
			return "unlimited";
		break;
	case KIND_MODE:
		snprintf(text, PARAM_TEXT, "%04" PRIo64, value);
		return text;
	default:
		break;
	}
	snprintf(text, PARAM_TEXT, "%" PRIu64, value);
	return text;
}

/* Left out, these have a value other than 0. */
static bool has_default(const char *key, const struct kretry_policy *p)
{
	static const char *const always[] = {
		"max_retries", "base", "cap", "jitter", "hint_limit",
	};
	static const char *const budget[] = {
		"budget.initial", "budget.reserve_cap", "budget.cost_transient",
		"budget.cost_throttled", "budget.cost_unknown",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(always); i++)
		if (!strcmp(key, always[i]))
			return true;
	for (i = 0; i < ARRAY_SIZE(budget); i++)
		if (p->budget.capacity_utok && !strcmp(key, budget[i]))
			return true;
	return (p->pacing.pace_ns && !strcmp(key, "pacing.horizon")) ||
	       (p->open_flags & KRETRY_OPEN_GLOBAL && !strcmp(key, "mode"));
}

/* As a section of a file, which would make the same policy. */
void params_print(const struct kretry_policy *policy)
{
	static char text[PARAM_TEXT];
	unsigned int i;

	printf("[%s]\n", shown_name(policy->name, text));
	for (i = 0; i < params_count; i++)
		if (param_get(&params[i], policy) || has_default(params[i].key, policy))
			printf("%s = %s\n", params[i].key, param_text(&params[i], policy, text));
}

void params_print_keys(void)
{
	unsigned int i;

	printf("  %-30s %s\n", "preset", "start from it; must come first");
	for (i = 0; i < params_count; i++)
		printf("  %-30s %s\n", params[i].key, params[i].help);
	printf("  %-30s %s\n", "budget.cost", "all three costs at once");
	puts("Durations have a unit: 250ms, 1.5s, 2m. Ratios are 20% or 0.2, flags yes or no. In\n"
	     "parentheses is what a part that is used has without being told. A policy without a\n"
	     "preset starts with exponential delays from 100ms to 20s, full jitter, 4 retries.");
}
