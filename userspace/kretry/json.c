// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* JSON for scripts: numbers are in the units of the ABI, which their names end in. */

#include <jansson.h>
#include <string.h>

#include "params.h"

static const char *suffix(enum kind kind)
{
	switch (kind) {
	case KIND_DURATION:
	case KIND_TABLE:
		return "_ns";
	case KIND_TOKENS:
		return "_utok";
	case KIND_RATIO:
	case KIND_FACTOR:
		return "_ppm";
	default:
		return "";
	}
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *table_json(const struct kretry_policy *policy)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < policy->backoff.table_len; i++)
		json_array_append_new(list, number(policy->backoff.table_ns[i]));
	return list;
}

static json_t *value_json(const struct param *param, const struct kretry_policy *policy)
{
	uint64_t value = param_get(param, policy);

	switch (param->kind) {
	case KIND_FLAG:
		return json_boolean(value);
	case KIND_NAME8:
	case KIND_NAME32:
		return json_string(param->names[value]);
	case KIND_LIMIT:
		return value == KRETRY_NO_LIMIT ? json_null() : number(value);
	case KIND_TABLE:
		return table_json(policy);
	default:
		return number(value);
	}
}

/* What is "budget" of "budget.cost_unknown", made if need be, and *@name the rest. */
static json_t *part_of(json_t *json, const char *key, const char **name)
{
	const char *dot = strchr(key, '.');
	char part[32];

	*name = key;
	if (!dot)
		return json;
	*name = dot + 1;
	snprintf(part, sizeof(part), "%.*s", (int)(dot - key), key);
	if (!json_object_get(json, part))
		json_object_set_new(json, part, json_object());
	return json_object_get(json, part);
}

/* "budget.cost_unknown" is "cost_unknown_utok" in the object "budget". */
struct json_t *params_json(const struct kretry_policy *policy)
{
	json_t *json = json_object(), *part;
	char text[SHOWN_NAME], key[64];
	const char *name;
	unsigned int i;

	json_object_set_new(json, "name", json_string(shown_name(policy->name, text)));
	for (i = 0; i < params_count; i++) {
		part = part_of(json, params[i].key, &name);
		snprintf(key, sizeof(key), "%s%s", name, suffix(params[i].kind));
		json_object_set_new(part, key, value_json(&params[i], policy));
	}
	return json;
}

void print_json(struct json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(json);
}
