// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A policy from settings, each of which may be wrong. */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "params.h"

void draft_init(struct draft *draft)
{
	memset(draft, 0, sizeof(*draft));
	kretry_policy_init(&draft->policy);
}

static bool wrong(struct problem *problem, const char *key, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static bool wrong(struct problem *problem, const char *key, int line, const char *format, ...)
{
	va_list list;

	snprintf(problem->key, sizeof(problem->key), "%s", key ? key : "");
	problem->line = line;
	va_start(list, format);
	vsnprintf(problem->text, sizeof(problem->text), format, list);
	va_end(list);
	return false;
}

bool draft_set_name(struct draft *draft, const char *name, struct problem *problem)
{
	size_t len = strlen(name);

	if (!len)
		return wrong(problem, NULL, draft->line, "a policy needs a name");
	if (len >= KRETRY_NAME_MAX)
		return wrong(problem, NULL, draft->line, "a name has at most %d bytes",
			     KRETRY_NAME_MAX - 1);
	memcpy(draft->policy.name, name, len);
	return true;
}

const struct param *param_find(const char *key)
{
	unsigned int i;

	for (i = 0; i < params_count; i++)
		if (!strcmp(params[i].key, key))
			return &params[i];
	return NULL;
}

/* -------- values -------- */

static const char *parse_name(const char *text, const char *const *names, uint64_t *value)
{
	for (*value = 0; *value == 0 || names[*value]; ++*value)
		if (names[*value] && *text && !strcmp(text, names[*value]))
			return NULL;
	return "no such value";
}

static const char *parse_flag(const char *text, uint64_t *value)
{
	*value = !strcmp(text, "yes");
	return *value || !strcmp(text, "no") ? NULL : "neither yes nor no";
}

static const char *parse_mode(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoul(text, &end, 8);
	if (!*text || *end || *value & ~0666ULL)
		return "not a mode: write 0660, without execute bits";
	return NULL;
}

static const char *parse_value(const struct param *param, const char *text, uint64_t *value)
{
	switch (param->kind) {
	case KIND_DURATION:
		return parse_duration(text, value);
	case KIND_TOKENS:
		return parse_tokens(text, value);
	case KIND_RATIO:
		return parse_ratio(text, value);
	case KIND_FACTOR:
		return parse_factor(text, value);
	case KIND_NAME8:
	case KIND_NAME32:
		return parse_name(text, param->names, value);
	case KIND_FLAG:
		return parse_flag(text, value);
	case KIND_MODE:
		return parse_mode(text, value);
	case KIND_LIMIT:
		if (strcmp(text, "unlimited"))
			break;
		*value = KRETRY_NO_LIMIT;
		return NULL;
	default:
		break;
	}
	return parse_count(text, param->bit ? param->bit : UINT32_MAX, value);
}

/* Durations with commas between them. Another line goes on where the last one ended. */
static const char *add_to_table(struct draft *draft, const char *text)
{
	struct kretry_backoff *b = &draft->policy.backoff;
	char one[UNIT_TEXT];
	const char *error;
	size_t len;

	while (*text) {
		text += strspn(text, " \t");
		len = strcspn(text, ",");
		if (len >= sizeof(one))
			return "not a list of durations: write 1s, 2s, 4s";
		memcpy(one, text, len);
		while (len && strchr(" \t", one[len - 1]))
			len--;
		one[len] = '\0';
		if (b->table_len == KRETRY_TABLE_MAX)
			return "more than 64 delays";
		error = parse_duration(one, (uint64_t *)&b->table_ns[b->table_len]);
		if (error)
			return error;
		b->table_len++;
		text += strcspn(text, ",");
		text += *text == ',';
	}
	return b->table_len ? NULL : "no delays";
}

/* -------- settings -------- */

static bool set_preset(struct draft *draft, const char *name, int line, struct problem *problem)
{
	struct kretry_policy preset;

	if (draft->settings)
		return wrong(problem, "preset", line, "must come before the other settings");
	if (kretry_preset(name, &preset) < 0)
		return wrong(problem, "preset", line, "no preset %s: see kretry policy presets",
			     name);
	memcpy(preset.name, draft->policy.name, sizeof(preset.name));
	draft->policy = preset;
	draft->settings++;
	return true;
}

static bool set_costs(struct draft *draft, const char *value, int line, struct problem *problem)
{
	return draft_set(draft, "budget.cost_transient", value, line, problem) &&
	       draft_set(draft, "budget.cost_throttled", value, line, problem) &&
	       draft_set(draft, "budget.cost_unknown", value, line, problem);
}

bool draft_set(struct draft *draft, const char *key, const char *value, int line,
	       struct problem *problem)
{
	const struct param *param = param_find(key);
	const char *error;
	uint64_t number;

	if (!strcmp(key, "preset"))
		return set_preset(draft, value, line, problem);
	if (!strcmp(key, "budget.cost"))
		return set_costs(draft, value, line, problem);
	if (!param)
		return wrong(problem, key, line, "no such setting");
	if (draft->lines[param - params] && param->kind != KIND_TABLE)
		return wrong(problem, param->key, line, "set twice");
	if (param->kind == KIND_TABLE) {
		error = add_to_table(draft, value);
	} else {
		error = parse_value(param, value, &number);
		if (!error)
			param_put(param, &draft->policy, number);
	}
	if (error)
		return wrong(problem, param->key, line, "%s", error);
	draft->lines[param - params] = line;
	draft->settings++;
	return true;
}

bool draft_set_pair(struct draft *draft, const char *pair, struct problem *problem)
{
	const char *value = strchr(pair, '=');
	static char key[64];

	if (!value || value == pair || (size_t)(value - pair) >= sizeof(key))
		return wrong(problem, pair, 0, "not a setting: write KEY=VALUE");
	memcpy(key, pair, (size_t)(value - pair));
	key[value - pair] = '\0';
	return draft_set(draft, key, value + 1, 1, problem);
}

/* -------- what follows from what was set -------- */

static bool is_set(const struct draft *draft, const char *key)
{
	return draft->lines[param_find(key) - params];
}

static void default_to(struct draft *draft, const char *key, uint64_t value)
{
	const struct param *param = param_find(key);

	if (!draft->lines[param - params] && !param_get(param, &draft->policy))
		param_put(param, &draft->policy, value);
}

/* A strategy or a jitter has no use for what belongs to another. */
static void clear_unless_set(struct draft *draft, const char *key)
{
	if (!is_set(draft, key))
		param_put(param_find(key), &draft->policy, 0);
}

static void settle_backoff(struct draft *draft)
{
	struct kretry_backoff *b = &draft->policy.backoff;
	bool draws = b->strategy == KRETRY_DECORRELATED || b->strategy == KRETRY_SLOTTED;

	if (b->table_len && !is_set(draft, "strategy"))
		b->strategy = KRETRY_TABLE;
	if (b->strategy == KRETRY_EXPONENTIAL)
		default_to(draft, "multiplier", 2 * KRETRY_PPM);
	else
		clear_unless_set(draft, "multiplier");
	if (b->strategy == KRETRY_TABLE) {
		clear_unless_set(draft, "base");
		clear_unless_set(draft, "base_throttled");
		if (!is_set(draft, "cap") && b->table_len)
			b->cap_ns = b->table_ns[b->table_len - 1];
	}
	if (draws && !is_set(draft, "jitter"))
		b->jitter = KRETRY_JITTER_NONE;
	if (b->jitter != KRETRY_JITTER_PROPORTIONAL && b->jitter != KRETRY_JITTER_ADDITIVE)
		clear_unless_set(draft, "jitter_ratio");
	if (b->base_ns > b->cap_ns && !is_set(draft, "cap"))
		b->cap_ns = b->base_ns;
	if (b->base_ns > b->cap_ns && !is_set(draft, "base") && b->strategy != KRETRY_TABLE)
		b->base_ns = b->cap_ns;
}

static void settle_budget(struct draft *draft)
{
	struct kretry_budget *b = &draft->policy.budget;

	if (!b->capacity_utok)
		return;
	default_to(draft, "budget.initial", b->capacity_utok);
	if (b->initial_utok > b->capacity_utok && !is_set(draft, "budget.initial"))
		b->initial_utok = b->capacity_utok;
	if (b->refill_utok_per_s)
		default_to(draft, "budget.reserve_cap", b->initial_utok);
	if (b->drain_per_failure_utok)
		return;
	default_to(draft, "budget.cost_transient", KRETRY_UTOK);
	default_to(draft, "budget.cost_throttled", KRETRY_UTOK);
	default_to(draft, "budget.cost_unknown", KRETRY_UTOK);
}

static void settle_breaker(struct draft *draft)
{
	struct kretry_breaker *k = &draft->policy.breaker;

	if (k->consecutive || k->ratio_ppm || k->slow_ppm) {
		default_to(draft, "breaker.probes", 1);
		default_to(draft, "breaker.probe_timeout", 60000000000ULL);
		default_to(draft, "breaker.open_cap", k->open_ns);
		if (k->open_cap_ns < k->open_ns && !is_set(draft, "breaker.open_cap"))
			k->open_cap_ns = k->open_ns;
	}
	if (draft->policy.pacing.pace_ns)
		default_to(draft, "pacing.horizon", 60000000000ULL);
	if (draft->policy.open_flags & KRETRY_OPEN_GLOBAL)
		default_to(draft, "mode", 0666);
}

bool draft_finish(struct draft *draft, struct problem *problem)
{
	const char *key = NULL, *text;
	int line = 0;

	settle_backoff(draft);
	settle_budget(draft);
	settle_breaker(draft);
	text = settle_problem(&draft->policy, &key);
	if (!text)
		return true;
	if (key)
		line = draft->lines[param_find(key) - params];
	return wrong(problem, key, line ? line : draft->line, "%s", text);
}
