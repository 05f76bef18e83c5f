// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Who retries: one layer of several; and what makes a request the same one again. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "internal.h"

/* Never in parts: so few bytes are not interrupted once the generator is seeded. */
static int draw(unsigned char *bytes, size_t count)
{
	ssize_t got;

	do {
		got = getrandom(bytes, count, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return (size_t)got == count ? 0 : -EIO;
}

int kretry_idempotency_key(char key[KRETRY_IDEMPOTENCY_KEY_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[16];
	unsigned int i;
	int error = draw(bytes, sizeof(bytes));

	if (error)
		return error;
	bytes[6] = (bytes[6] & 0x0f) | 0x40;	/* version 4 */
	bytes[8] = (bytes[8] & 0x3f) | 0x80;	/* the variant of the RFC */
	for (i = 0; i < sizeof(bytes); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*key++ = '-';
		*key++ = digits[bytes[i] >> 4];
		*key++ = digits[bytes[i] & 15];
	}
	*key = '\0';
	return 0;
}

const char *kretry_attempt_text(const struct kretry_op *op, char text[KRETRY_ATTEMPT_SIZE])
{
	snprintf(text, KRETRY_ATTEMPT_SIZE, "%llu", op->attempt + 1ULL);
	return text;
}

/* A number but 0. What is none was not set by a layer that retries. */
int kretry_is_nested(const char *value)
{
	size_t digits;

	if (!value)
		value = getenv(KRETRY_ATTEMPT_ENV);
	if (!value)
		return 0;
	value += strspn(value, " \t");
	digits = strspn(value, "0123456789");
	if (value[digits + strspn(value + digits, " \t")])
		return 0;
	return strspn(value, "0") < digits;
}
