// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The tracepoint of each decision. */
#include "harness.h"

#include <fcntl.h>

#define TRACING	"/sys/kernel/tracing"
#define EVENT	TRACING "/events/kretry/kretry_decide"

FIXTURE(trace) {
	int fd;
	int policy;
	char text[16384];
};

FIXTURE_SETUP(trace)
{
	struct kretry_policy policy;

	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&policy);
	policy.max_retries = 1;
	self->policy = kt_create(self->fd, &policy);
	ASSERT_EQ(0, kt_write_file(TRACING "/tracing_on", "1"));
	ASSERT_EQ(0, kt_write_file(TRACING "/trace", ""));
	ASSERT_EQ(0, kt_write_file(EVENT "/enable", "1"));
}

FIXTURE_TEARDOWN(trace)
{
	EXPECT_EQ(0, kt_write_file(EVENT "/enable", "0"));
	EXPECT_EQ(0, kt_write_file(TRACING "/trace", ""));
	close(self->fd);
}

static void read_trace(FIXTURE_DATA(trace) *self)
{
	size_t len = 0;
	ssize_t got;
	int fd = open(TRACING "/trace", O_RDONLY | O_CLOEXEC);

	while ((got = read(fd, self->text + len, sizeof(self->text) - 1 - len)) > 0)
		len += got;
	self->text[len] = '\0';
	close(fd);
}

/* How often the trace has a decision that says @what. */
static int count(FIXTURE_DATA(trace) *self, const char *what)
{
	const char *at = self->text;
	int found = 0;

	while ((at = strstr(at, what))) {
		found++;
		at += strlen(what);
	}
	return found;
}

TEST_F(trace, decide_each_step_its_own_fields)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
	char line[256];

	op.key = 0xfedcba9876543210ULL;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	snprintf(line, sizeof(line),
		 "kretry_decide: policy=%d key=0xfedcba9876543210 event=transient "
		 "attempt=1 verdict=retry delay_ns=100000000 deadline_ns=%llu", self->policy,
		 (unsigned long long)op.deadline_ns);
	op.event = KRETRY_EVENT_THROTTLED;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	op.event = KRETRY_EVENT_OK;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	read_trace(self);
	EXPECT_EQ(1, count(self, line))
		TH_LOG("no \"%s\" in:\n%s", line, self->text);
	EXPECT_EQ(1, count(self, "event=throttled attempt=1 verdict=stop-limit "));
	EXPECT_EQ(1, count(self, "event=ok attempt=0 verdict=done "));
	EXPECT_EQ(3, count(self, "kretry_decide: "));
}

TEST_F(trace, decide_batch_once_for_each_good_op)
{
	struct kretry_op ops[10];
	int i;

	for (i = 0; i < 10; i++)
		ops[i] = kt_op(self->policy, i == 3 ? KRETRY_EVENT_NONE : KRETRY_EVENT_BEGIN);
	ASSERT_EQ(10, kt_batch(self->fd, ops, 10));
	read_trace(self);
	EXPECT_EQ(9, count(self, "event=begin attempt=0 verdict=go "));
	EXPECT_EQ(9, count(self, "kretry_decide: "));
}

/* What cannot be answered is not decided either. */
TEST_F(trace, decide_read_only_op_no_event)
{
	struct kretry_op ops[100];
	int i;

	for (i = 0; i < 100; i++)
		ops[i] = kt_op(self->policy, KRETRY_EVENT_BEGIN);
	EXPECT_EQ(-EFAULT, kt_step(self->fd, kt_read_only(ops, sizeof(ops[0]))));
	EXPECT_EQ(-EFAULT, kt_batch(self->fd, kt_read_only(ops, sizeof(ops)), 100));
	read_trace(self);
	EXPECT_EQ(0, count(self, "kretry_decide: "));
}

TEST_F(trace, decide_refused_step_no_event)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_NONE);

	EXPECT_EQ(-EINVAL, kt_step(self->fd, &op));
	op = kt_op(self->policy + 1, KRETRY_EVENT_BEGIN);
	EXPECT_EQ(-ENOENT, kt_step(self->fd, &op));
	read_trace(self);
	EXPECT_EQ(0, count(self, "kretry_decide: "));
}

TEST_HARNESS_MAIN
