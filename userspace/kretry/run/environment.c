// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the command finds in its environment. */

#include <inttypes.h>
#include <stdlib.h>

#include "run.h"

void environment_set(const struct run *r)
{
	char text[KRETRY_ATTEMPT_SIZE], limit[24];
	const char *key = getenv("KRETRY_IDEMPOTENCY_KEY");

	if (!key || !*key)
		setenv("KRETRY_IDEMPOTENCY_KEY", r->key, 1);
	if (r->nested || r->limit == 1)
		return;
	setenv(KRETRY_ATTEMPT_ENV, kretry_attempt_text(&r->op, text), 1);
	snprintf(limit, sizeof(limit), "%" PRIu64, r->limit);
	if (r->limit)
		setenv("KRETRY_ATTEMPTS", limit, 1);
	else
		unsetenv("KRETRY_ATTEMPTS");
	if (r->last_class)
		setenv("KRETRY_REASON", kretry_event_name(r->last_class), 1);
	else
		unsetenv("KRETRY_REASON");
}
