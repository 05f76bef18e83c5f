// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init.h"

#define TEXT_LIMIT (256 * 1024)

void text_add(struct text *text, const char *data, size_t len)
{
	if (text->len + len > TEXT_LIMIT) {
		text->cut = true;
		len = TEXT_LIMIT - text->len;
	}
	if (!len)
		return;
	text->data = realloc(text->data, text->len + len + 1);
	if (!text->data)
		bail_out("out of memory");
	memcpy(text->data + text->len, data, len);
	text->len += len;
	text->data[text->len] = '\0';
}

void text_printf(struct text *text, const char *fmt, ...)
{
	char line[1024];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (len >= (int)sizeof(line))
		len = sizeof(line) - 1;
	text_add(text, line, len);
}

void text_free(struct text *text)
{
	free(text->data);
	memset(text, 0, sizeof(*text));
}

void write_all(int fd, const char *data, size_t len)
{
	ssize_t done;

	while (len) {
		done = write(fd, data, len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		data += done;
		len -= done;
	}
}
