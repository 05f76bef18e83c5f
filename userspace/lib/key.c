// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The canonical key of a dependency, on which programs in any language can agree. */

#include <sha2.h>

#include "internal.h"

uint64_t kretry_key(const char *origin)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX context;
	unsigned char byte;
	u64 key = 0;
	int i;

	SHA256Init(&context);
	for (; *origin; origin++) {
		byte = (unsigned char)*origin;
		if (byte >= 'A' && byte <= 'Z')
			byte = (unsigned char)(byte - 'A' + 'a');
		SHA256Update(&context, &byte, 1);
	}
	SHA256Final(digest, &context);
	for (i = 7; i >= 0; i--)
		key = key << 8 | digest[i];
	return key ? key : 1;
}
