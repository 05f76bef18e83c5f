/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* How the command complains is in options.c, with all of it behind; here nobody listens. */
#ifndef KRETRY_FUZZ_COMPLAINTS_H
#define KRETRY_FUZZ_COMPLAINTS_H

#include "command.h"

int fail(const char *format, ...)
{
	(void)format;
	return EXIT_FAILED;
}

int usage_error(const char *format, ...)
{
	(void)format;
	return EXIT_USAGE;
}

#endif /* KRETRY_FUZZ_COMPLAINTS_H */
