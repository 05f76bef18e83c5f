/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The parameters of a policy, by the names they have in a file. */
#ifndef KRETRY_PARAMS_H
#define KRETRY_PARAMS_H

#include <stddef.h>

#include "command.h"

enum kind {
	KIND_DURATION,		/* u64 */
	KIND_TOKENS,		/* u64 */
	KIND_RATIO,		/* u32 */
	KIND_FACTOR,		/* u32 */
	KIND_COUNT,		/* u32 */
	KIND_LIMIT,		/* u32, or "unlimited" */
	KIND_COUNT8,		/* u8 */
	KIND_NAME8,		/* u8, by name */
	KIND_NAME32,		/* u32, by name */
	KIND_FLAG,		/* a bit of a u32 */
	KIND_MODE,		/* u32, octal */
	KIND_TABLE		/* the table of durations */
};

struct param {
	const char	*key;
	enum kind	kind;
	uint32_t	bit;		/* of a flag; most of a count, 0 is any */
	size_t		offset;
	const char	*const *names;	/* by value */
	const char	*help;
};

extern const struct param params[];
extern const unsigned int params_count;

/* Its value in @policy, whatever its size; of a flag 0 or 1. */
uint64_t param_get(const struct param *param, const struct kretry_policy *policy);
void param_put(const struct param *param, struct kretry_policy *policy, uint64_t value);

/* The value as it is written in a file. */
const char *param_text(const struct param *param, const struct kretry_policy *policy, char *text);

/* Room for a table of durations. */
#define PARAM_TEXT	(KRETRY_TABLE_MAX * (UNIT_TEXT + 2))

/* draft.c */
const struct param *param_find(const char *key);

/* settle.c: the first thing about the policy that does not fit, or NULL. */
const char *settle_problem(const struct kretry_policy *p, const char **key);

#endif /* KRETRY_PARAMS_H */
