/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The command, run by a test that looks at what it says. The fixture has a char out[]. */
#ifndef KRETRY_SELFTEST_TOOL_H
#define KRETRY_SELFTEST_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "kretry.h"

/* kretry with the words of @line, on these for stdin and for stdout and stderr. */
pid_t tool_start(const char *line, const int *std);

/* Its exit status, or -1 if a signal ended it. */
int tool_wait(pid_t pid);

/* Both; what it says, stderr too, is then in @out. */
int tool_run(char *out, size_t size, const char *line);

/* Whether @text is in @out; if not it is shown. */
bool tool_says(const char *out, const char *text);

/* Make a file with the directories it is in. */
int tool_write_file(const char *path, const char *text);

/* Let go of what @k holds, and free every name there is. */
int tool_forget_policies(struct kretry *k);

#define RUN(status, line) do {						\
	int got_ = tool_run(self->out, sizeof(self->out), line);	\
									\
	EXPECT_EQ(status, got_)						\
		TH_LOG("kretry %s: %s", line, self->out);		\
} while (0)

#define SAYS(text)	EXPECT_TRUE(tool_says(self->out, text))
#define SAYS_NOT(text)	EXPECT_EQ(NULL, strstr(self->out, text))

#endif /* KRETRY_SELFTEST_TOOL_H */
