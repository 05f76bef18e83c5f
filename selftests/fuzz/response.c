// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* kretry_parse_response() */
#include "fuzz.h"

#include <kretry.h>

#define LATER	10000000000ULL	/* the clock goes on between two readings */

static int parse(const char *head, size_t length, struct kretry_response *r)
{
	char *copy = malloc(length ? length : 1);
	int ret;

	ENSURE(copy);
	memcpy(copy, head, length);
	memset(r, 0x5a, sizeof(*r));
	ret = kretry_parse_response(copy, length, r);
	free(copy);
	return ret;
}

static void ensure_same(int ret, const struct kretry_response *r, const char *head, size_t length)
{
	struct kretry_response again;

	ENSURE(parse(head, length, &again) == ret);
	ENSURE(again.status == r->status && again.flags == r->flags);
	ENSURE(again.hint_ns <= r->hint_ns && r->hint_ns - again.hint_ns < LATER);
}

/* Lines that end in LF may as well end in CR LF. */
static size_t with_crlf(const char *head, size_t length, char *to)
{
	size_t i, n = 0;

	for (i = 0; i < length; i++) {
		if (head[i] == '\n' && (!i || head[i - 1] != '\r'))
			to[n++] = '\r';
		to[n++] = head[i];
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char another[] = "HTTP/1.1 207 x\r\nX: y\r\n\r\n";
	struct kretry_response r, poison;
	char *other = malloc(2 * size + sizeof(another));
	size_t length;
	int ret = parse((const char *)data, size, &r);

	ENSURE(other);
	memset(&poison, 0x5a, sizeof(poison));
	ENSURE(ret == 0 || ret == -ENOENT);
	if (ret) {
		ENSURE(!memcmp(&r, &poison, sizeof(r)));
	} else {
		ENSURE(r.status >= 100 && r.status <= 999);
		ENSURE(r.flags == 0 || r.flags == KRETRY_OP_HINT);
		ENSURE(r.flags ? r.hint_ns <= KRETRY_NS_MAX : !r.hint_ns);
	}
	length = with_crlf((const char *)data, size, other);
	ensure_same(ret, &r, other, length);
	/* A head of its own before it, as of a proxy, says nothing. */
	memcpy(other, another, sizeof(another) - 1);
	if (size)
		memcpy(other + sizeof(another) - 1, data, size);
	if (!ret)
		ensure_same(ret, &r, other, size + sizeof(another) - 1);
	free(other);
	return 0;
}
