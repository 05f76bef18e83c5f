// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The module, its policies and keys, as they are named on a command line. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

int open_any(const struct options *o, struct kretry **k)
{
	int ret = kretry_open(k, o->value[OPT_DEVICE], 0);

	return ret < 0 ? fail("%s", strerror(-ret)) : 0;
}

/* For what the process alone cannot do, as it ends when the command does. */
int open_module(const struct options *o, struct kretry **k)
{
	int ret = open_any(o, k);

	if (ret || kretry_backend(*k) == KRETRY_BACKEND_MODULE)
		return ret;
	fail("%s", kretry_backend_reason(*k));
	kretry_close(*k);
	return EXIT_FAILED;
}

int open_policy(struct kretry *k, const struct options *o, const char *name, uint32_t *id,
		bool *global)
{
	char shown[SHOWN_NAME];
	int ret = -ENOENT;

	*global = o->value[OPT_GLOBAL];
	if (!*global)
		ret = kretry_policy_open(k, name, 0, id);
	if (ret == -ENOENT) {
		*global = true;
		ret = kretry_policy_open(k, name, KRETRY_OPEN_GLOBAL, id);
	}
	if (!ret)
		return 0;
	shown_name((const unsigned char *)name, shown);
	if (ret == -ENOENT)
		return fail("no policy %s: see kretry policy list", shown);
	return fail("%s: %s", shown, strerror(-ret));
}

/* A number, or an origin like https://api.example.com:443. */
int parse_key(const char *text, uint64_t *key)
{
	char *end;

	errno = 0;
	*key = strtoull(text, &end, 0);
	if (*text >= '0' && *text <= '9' && !*end && !errno)
		return 0;
	end = strstr(text, "://");
	if (!end || end == text || !end[3])
		return usage_error("--key %s: a key is a number or scheme://host:port", text);
	*key = kretry_key(text);
	return 0;
}

/* Of names others have chosen nothing reaches the terminal as it is but plain ASCII. */
const char *shown_name(const unsigned char *name, char *text)
{
	char *to = text;
	int i;

	for (i = 0; i < KRETRY_NAME_MAX - 1 && name[i]; i++) {
		if (name[i] > ' ' && name[i] < 0x7f && name[i] != '\\')
			*to++ = (char)name[i];
		else
			to += sprintf(to, "\\x%02x", name[i]);
	}
	*to = '\0';
	return text;
}

static const char *const modes[] = {
	[KRETRY_MODE_AUTOMATIC] = "auto", [KRETRY_MODE_FORCED_OPEN] = "open",
	[KRETRY_MODE_FORCED_CLOSED] = "closed", [KRETRY_MODE_METRICS_ONLY] = "metrics",
};

static const char *const states[] = {
	[KRETRY_CLOSED] = "closed", [KRETRY_OPEN] = "open", [KRETRY_HALF_OPEN] = "half-open",
};

const char *mode_name(unsigned int mode)
{
	return mode < ARRAY_SIZE(modes) ? modes[mode] : NULL;
}

const char *state_name(unsigned int state)
{
	return state < ARRAY_SIZE(states) ? states[state] : "?";
}
