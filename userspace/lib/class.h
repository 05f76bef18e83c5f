/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tables of what results mean, by code. */
#ifndef KRETRY_CLASS_H
#define KRETRY_CLASS_H

#include "internal.h"

#define OK		KRETRY_EVENT_OK
#define CANCELLED	KRETRY_EVENT_CANCELLED
#define TRANSIENT	KRETRY_EVENT_TRANSIENT
#define THROTTLED	KRETRY_EVENT_THROTTLED
#define UNKNOWN		KRETRY_EVENT_UNKNOWN
#define PERMANENT	KRETRY_EVENT_PERMANENT

#define COUNT(table)	((int)(sizeof(table) / sizeof(*(table))))

static inline enum kretry_event look_up(const unsigned char *table, int count, int code)
{
	return code >= 0 && code < count && table[code] ? table[code] : UNKNOWN;
}

#endif /* KRETRY_CLASS_H */
