// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* While it waits, on a terminal: how long still, in one line that is written over. */

#include <inttypes.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "run.h"

#define TENTH_NS	(100 * NS_PER_MS)

/* In the background it would write into what others show, or be stopped for it. */
bool countdown_wanted(const struct run *r)
{
	return !r->set.quiet && !r->set.json && isatty(STDERR_FILENO) &&
	       tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static int columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* Returns how long until it is to be drawn again: whole seconds, in the last one tenths. */
uint64_t countdown_draw(struct run *r, uint64_t left_ns)
{
	uint64_t unit = left_ns > NS_PER_S ? NS_PER_S : TENTH_NS;
	uint64_t units = (left_ns + unit - 1) / unit;
	char text[64];

	if (!countdown_wanted(r))
		return NS_PER_S;
	if (unit == NS_PER_S)
		snprintf(text, sizeof(text), "kretry: next attempt in %" PRIu64 "s", units);
	else
		snprintf(text, sizeof(text), "kretry: next attempt in %" PRIu64 ".%" PRIu64 "s",
			 units / 10, units % 10);
	/* A longer one could not be written over. */
	fprintf(stderr, "\r\033[K%.*s", columns() - 1, text);
	r->countdown = true;
	return left_ns - (units - 1) * unit;
}

void countdown_erase(struct run *r)
{
	if (!r->countdown)
		return;
	r->countdown = false;
	fputs("\r\033[K", stderr);
}
