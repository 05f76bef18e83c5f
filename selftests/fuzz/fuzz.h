/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the targets share. Each is one file: what holds for the parser, whatever it is given. */
#ifndef KRETRY_FUZZ_H
#define KRETRY_FUZZ_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON	0x5a5a5a5a5a5a5a5aULL

/* What has to hold; the fuzzer keeps the input with which it does not. */
#define ENSURE(true_if) do {                                                                       \
	if (!(true_if)) {                                                                          \
		fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #true_if);       \
		abort();                                                                           \
	}                                                                                          \
} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A string of exactly that size, so that a read past its end is seen; for the caller to free(). */
static inline char *text_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	ENSURE(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif /* KRETRY_FUZZ_H */
