// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The lists of exit statuses of kretry run: one that is accepted is the same written in full. */
#include "fuzz.h"

#include "run/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size), written[256 * 4 + 1];
	struct statuses statuses, again;
	const char *error = statuses_parse(text, &statuses);
	size_t length = 0;
	int i;

	free(text);
	if (error)
		return 0;
	ENSURE(statuses.given && !statuses.has[0]);
	for (i = 1; i < 256; i++)
		if (statuses.has[i])
			length += (size_t)sprintf(written + length, "%s%d", length ? "," : "", i);
	ENSURE(length);
	ENSURE(!statuses_parse(written, &again));
	ENSURE(!memcmp(&statuses, &again, sizeof(again)));
	return 0;
}
