// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Why a policy would be refused, in words: the module says no more than EINVAL. */

#include <errno.h>
#include <string.h>

#include "params.h"

struct rule {
	bool		broken;
	const char	*key;
	const char	*text;
};

static const char *first_broken(const struct rule *rules, size_t count, const char **key)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!rules[i].broken)
			continue;
		*key = rules[i].key;
		return rules[i].text;
	}
	return NULL;
}

static bool table_decreases(const struct kretry_backoff *b)
{
	unsigned int i;

	for (i = 1; i < b->table_len; i++)
		if (b->table_ns[i] < b->table_ns[i - 1])
			return true;
	return false;
}

static const char *backoff_problem(const struct kretry_backoff *b, const char **key)
{
	bool table = b->strategy == KRETRY_TABLE, exponential = b->strategy == KRETRY_EXPONENTIAL;
	bool draws = b->strategy == KRETRY_DECORRELATED || b->strategy == KRETRY_SLOTTED;
	bool slides = b->jitter == KRETRY_JITTER_PROPORTIONAL ||
		      b->jitter == KRETRY_JITTER_ADDITIVE;
	const struct rule rules[] = {
		{ b->base_ns > b->cap_ns, "base", "above the cap" },
		{ b->base_throttled_ns > b->cap_ns, "base_throttled", "above the cap" },
		{ b->floor_ns > b->cap_ns, "floor", "above the cap" },
		{ table && !b->table_len, "strategy", "table needs the setting table" },
		{ !table && b->table_len, "table", "only for strategy table" },
		{ table && b->base_ns, "base", "strategy table has none" },
		{ table && b->base_throttled_ns, "base_throttled", "strategy table has none" },
		{ table_decreases(b), "table", "a delay is shorter than the one before" },
		{ table && b->table_ns[0] > b->cap_ns, "cap", "below the table's first delay" },
		{ exponential && b->multiplier_ppm < KRETRY_PPM, "multiplier", "below 1" },
		{ !exponential && b->multiplier_ppm, "multiplier", "only for exponential" },
		{ draws && b->jitter, "jitter", "decorrelated and slotted draw by themselves" },
		{ !slides && b->jitter_ppm, "jitter_ratio", "only for proportional and additive" },
		{ b->jitter == KRETRY_JITTER_PROPORTIONAL && b->jitter_ppm > KRETRY_PPM,
		  "jitter_ratio", "above 100 %" },
		{ b->strategy == KRETRY_SLOTTED && !b->base_ns, "base", "0 slots none" },
	};

	return first_broken(rules, ARRAY_SIZE(rules), key);
}

static const char *budget_problem(const struct kretry_budget *b, const char **key)
{
	const struct rule rules[] = {
		{ b->initial_utok > b->capacity_utok, "budget.initial", "above the capacity" },
		{ b->reserve_cap_utok > b->capacity_utok, "budget.reserve_cap",
		  "above the capacity" },
		{ b->window_ns && b->window_ns < 10, "budget.window", "below 10ns" },
		{ !b->capacity_utok && b->refill_utok_per_s, "budget.refill_per_s",
		  "needs budget.capacity" },
		{ !b->capacity_utok && (b->cost_transient_utok || b->drain_per_failure_utok ||
					b->deposit_request_utok || b->admit_above_utok ||
					b->deposit_first_success_utok || b->window_ns ||
					b->deposit_retry_success_utok || b->cost_throttled_utok ||
					b->cost_unknown_utok || b->flags),
		  "budget.capacity", "0, but other settings of the budget are not" },
	};

	return first_broken(rules, ARRAY_SIZE(rules), key);
}

static const char *breaker_problem(const struct kretry_breaker *k, const char **key)
{
	bool on = k->probes, rates = k->ratio_ppm || k->slow_ppm;
	const struct rule rules[] = {
		{ !on && (k->open_ns || k->window_ns || k->window_calls || k->open_cap_ns),
		  "breaker.probes", "a breaker needs consecutive, ratio or slow_ratio, or probes" },
		{ on && !k->open_ns, "breaker.open", "a breaker needs to know for how long" },
		{ k->open_cap_ns < k->open_ns, "breaker.open_cap", "below breaker.open" },
		{ on && !k->probe_timeout_ns, "breaker.probe_timeout", "0 would lose every probe" },
		{ k->window_ns && k->window_calls, "breaker.window_calls",
		  "not besides breaker.window" },
		{ rates && !k->window_ns && !k->window_calls,
		  k->ratio_ppm ? "breaker.ratio" : "breaker.slow_ratio",
		  "needs breaker.window or breaker.window_calls" },
		{ !rates && k->min_reporters < 2 && k->window_ns, "breaker.window",
		  "needs breaker.ratio, slow_ratio or min_reporters" },
		{ !rates && k->min_reporters < 2 && k->window_calls, "breaker.window_calls",
		  "needs breaker.ratio, slow_ratio or min_reporters" },
		{ k->ratio_ppm > KRETRY_PPM, "breaker.ratio", "above 100 %" },
		{ k->slow_ppm > KRETRY_PPM, "breaker.slow_ratio", "above 100 %" },
		{ k->half_open_ppm > KRETRY_PPM, "breaker.half_open_ratio", "above 100 %" },
		{ k->open_jitter_ppm > KRETRY_PPM / 2, "breaker.open_jitter", "above 50 %" },
		{ k->open_growth_ppm && k->open_growth_ppm < KRETRY_PPM, "breaker.open_growth",
		  "below 1" },
		{ k->slow_ns && !k->slow_ppm, "breaker.slow", "needs breaker.slow_ratio" },
		{ k->window_calls && k->window_calls < 10, "breaker.window_calls", "below 10" },
		{ k->window_calls && k->min_calls > k->window_calls / 10 * 10,
		  "breaker.min_calls", "more than the window holds" },
		{ k->window_ns && k->min_calls > 32768, "breaker.min_calls", "above 32768" },
	};

	return first_broken(rules, ARRAY_SIZE(rules), key);
}

/* All that has no words of its own above: who decides is asked, about a policy without a name. */
static const char *refusal(const struct kretry_policy *p)
{
	struct kretry_policy nameless = *p;
	struct kretry *k;
	int ret;

	memset(nameless.name, 0, sizeof(nameless.name));
	nameless.open_flags = 0;
	nameless.linger_ns = 0;
	nameless.mode = 0;
	nameless.uid = 0;
	nameless.gid = 0;
	ret = kretry_open(&k, NULL, KRETRY_PROCESS_ONLY);
	if (!ret) {
		ret = kretry_policy_create(k, &nameless);
		kretry_close(k);
	}
	switch (ret) {
	case 0:
		return NULL;
	case -EOPNOTSUPP:
		return "has settings that this version does not know";
	case -EINVAL:
		return "has a setting that is out of its range, or useless without another";
	}
	return strerror(-ret);
}

const char *settle_problem(const struct kretry_policy *p, const char **key)
{
	bool global = p->open_flags & KRETRY_OPEN_GLOBAL;
	const struct rule rules[] = {
		{ p->flags & KRETRY_POLICY_WAIT_OPEN && !p->breaker.probes, "breaker.wait_open",
		  "needs a breaker" },
		{ p->flags & KRETRY_POLICY_PACE_ALL && !p->pacing.pace_ns, "pacing.all",
		  "needs pacing.every" },
		{ !p->pacing.pace_ns && p->pacing.horizon_ns, "pacing.horizon",
		  "needs pacing.every" },
		{ !global && p->mode, "mode", "only for a global policy" },
		{ !global && p->uid, "uid", "only for a global policy" },
		{ !global && p->gid, "gid", "only for a global policy" },
	};
	const char *text = backoff_problem(&p->backoff, key);

	if (!text)
		text = budget_problem(&p->budget, key);
	if (!text)
		text = breaker_problem(&p->breaker, key);
	if (!text)
		text = first_broken(rules, ARRAY_SIZE(rules), key);
	return text ? text : refusal(p);
}
