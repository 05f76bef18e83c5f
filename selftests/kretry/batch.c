// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* STEP_BATCH: any count, bad ops among good ones, memory that ends or cannot be written, kills. */
#include "harness.h"

#include <signal.h>
#include <sys/mman.h>

FIXTURE(batch) {
	int fd;
	int policy;
	struct kretry_info info;
	struct kretry_op *ops;	/* one more than a batch may have, shared with children */
	size_t size;
};

FIXTURE_SETUP(batch)
{
	struct kretry_policy policy;

	self->fd = kt_open();
	ASSERT_EQ(0, kt_info(self->fd, &self->info));
	kt_policy(&policy);
	self->policy = kt_create(self->fd, &policy);
	ASSERT_LT(0, self->policy);
	self->size = (self->info.max_batch + 1) * sizeof(*self->ops);
	self->ops = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	ASSERT_NE(MAP_FAILED, self->ops);
}

FIXTURE_TEARDOWN(batch)
{
	munmap(self->ops, self->size);
	close(self->fd);
}

static void fill(FIXTURE_DATA(batch) *self, struct kretry_op *ops, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		ops[i] = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
		ops[i].key = i;
		ops[i].user_data = ~(uint64_t)i;
	}
}

static bool is_untouched(FIXTURE_DATA(batch) *self, const struct kretry_op *op, unsigned int i)
{
	struct kretry_op want = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);

	want.key = i;
	want.user_data = ~(uint64_t)i;
	return !memcmp(&want, op, sizeof(want));
}

static bool is_decided(const struct kretry_op *op, unsigned int i)
{
	return op->verdict == KRETRY_RETRY && op->event == KRETRY_EVENT_NONE && op->attempt == 1 &&
	       op->delay_ns == 100 * MSEC && op->deadline_ns == op->start_ns + op->delay_ns &&
	       op->key == i && op->user_data == ~(uint64_t)i;
}

/* How many ops from the first on are decided; they must be followed by untouched ones only. */
static unsigned int count_decided(struct __test_metadata *_metadata, FIXTURE_DATA(batch) *self,
				  const struct kretry_op *ops, unsigned int count)
{
	unsigned int decided = 0, untouched;

	while (decided < count && is_decided(&ops[decided], decided))
		decided++;
	for (untouched = decided; untouched < count; untouched++)
		ASSERT_TRUE(is_untouched(self, &ops[untouched], untouched))
			TH_LOG("op %u of %u, %u decided", untouched, count, decided);
	return decided;
}

TEST_F(batch, any_count_all_decided_none_beyond)
{
	const unsigned int counts[] = {
		0, 1, 2, 63, 64, 65, 127, 128, 129, 1000, 1024, self->info.max_batch,
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(counts); i++) {
		fill(self, self->ops, counts[i] + 1);
		EXPECT_EQ((int)counts[i], kt_batch(self->fd, self->ops, counts[i]));
		EXPECT_EQ(counts[i], count_decided(_metadata, self, self->ops, counts[i] + 1));
	}
}

TEST_F(batch, more_than_max_batch_emsgsize_nothing_decided)
{
	static const unsigned int counts[] = { 0x7fffffff, 0x80000000, 0xffffffff };
	size_t i;

	fill(self, self->ops, self->info.max_batch + 1);
	EXPECT_EQ(-EMSGSIZE, kt_batch(self->fd, self->ops, self->info.max_batch + 1));
	for (i = 0; i < ARRAY_LEN(counts); i++)
		EXPECT_EQ(-EMSGSIZE, kt_batch(self->fd, self->ops, counts[i]));
	EXPECT_EQ(0, count_decided(_metadata, self, self->ops, self->info.max_batch + 1));
}

TEST_F(batch, one_decision_same_as_by_step)
{
	static const unsigned int events[] = {
		KRETRY_EVENT_BEGIN, KRETRY_EVENT_OK, KRETRY_EVENT_CANCELLED, KRETRY_EVENT_TRANSIENT,
		KRETRY_EVENT_THROTTLED, KRETRY_EVENT_UNKNOWN, KRETRY_EVENT_PERMANENT,
	};
	struct kretry_op one, other;
	size_t i;

	for (i = 0; i < 2 * ARRAY_LEN(events); i++) {
		one = kt_op(self->policy, events[i / 2]);
		one.attempt = i;
		one.flags = i % 2 ? KRETRY_OP_IDEMPOTENT : 0;
		other = one;
		ASSERT_EQ(0, kt_step(self->fd, &one));
		ASSERT_EQ(1, kt_batch(self->fd, &other, 1));
		EXPECT_EQ(one.start_ns != 0, other.start_ns != 0);
		EXPECT_EQ(one.deadline_ns != 0, other.deadline_ns != 0);
		if (one.deadline_ns)
			EXPECT_EQ(one.deadline_ns - one.start_ns,
				  other.deadline_ns - other.start_ns);
		other.start_ns = one.start_ns;
		other.deadline_ns = one.deadline_ns;
		EXPECT_EQ(0, memcmp(&one, &other, sizeof(one)));
	}
}

TEST_F(batch, ops_of_a_call_start_in_order_within_it)
{
	uint64_t last = kt_now(CLOCK_MONOTONIC);
	unsigned int i;

	fill(self, self->ops, 1000);
	ASSERT_EQ(1000, kt_batch(self->fd, self->ops, 1000));
	for (i = 0; i < 1000; i++) {
		ASSERT_LE(last, self->ops[i].start_ns);
		last = self->ops[i].start_ns;
	}
	EXPECT_GE(kt_now(CLOCK_MONOTONIC), last);
}

TEST_F(batch, one_bad_op_the_others_done)
{
	static const struct {
		const char *what;
		int error;
	} rows[] = {
		{ "event", EINVAL }, { "flags", EINVAL }, { "hint", EINVAL }, { "policy", ENOENT },
		{ "queue", EEXIST },
	};
	static const unsigned int places[] = { 0, 31, 63, 64, 99 };
	struct kretry_op bad, want, queued = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
	size_t i, j;

	queued.flags = KRETRY_OP_QUEUE;
	queued.user_data = 1;
	ASSERT_EQ(0, kt_step(self->fd, &queued));
	for (i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(places); i++) {
		j = places[i % ARRAY_LEN(places)];
		fill(self, self->ops, 100);
		bad = self->ops[j];
		bad.event = i / 5 == 0 ? 99 : bad.event;
		bad.flags = i / 5 == 1 ? 0x80 : i / 5 == 4 ? KRETRY_OP_QUEUE : 0;
		bad.user_data = i / 5 == 4 ? queued.user_data : bad.user_data;
		bad.hint_ns = i / 5 == 2;
		bad.policy += i / 5 == 3 ? 77 : 0;
		self->ops[j] = bad;
		ASSERT_EQ(100, kt_batch(self->fd, self->ops, 100));
		want = bad;
		want.verdict = KRETRY_ERROR;
		want.flags |= rows[i / 5].error << 8;
		EXPECT_EQ(0, memcmp(&want, &self->ops[j], sizeof(want)))
			TH_LOG("bad %s at %zu", rows[i / 5].what, j);
		EXPECT_EQ(rows[i / 5].error, KRETRY_OP_ERRNO(self->ops[j].flags));
		for (j = 0; j < 100; j++)
			if (j != places[i % ARRAY_LEN(places)])
				EXPECT_TRUE(is_decided(&self->ops[j], j));
	}
}

TEST_F(batch, array_over_the_end_of_memory_returns_the_number_done)
{
	static const unsigned int there[] = { 1, 10, 63, 64, 65, 100, 128, 200 };
	struct kretry_op *ops;
	size_t i;

	for (i = 0; i < ARRAY_LEN(there); i++) {
		ops = kt_page_end(there[i] * sizeof(*ops));
		fill(self, ops, there[i]);
		EXPECT_EQ((int)there[i], kt_batch(self->fd, ops, 1000))
			TH_LOG("%u ops before the hole", there[i]);
		EXPECT_EQ(there[i], count_decided(_metadata, self, ops, there[i]));
	}
}

/* Cut at any byte, and so with ops that are not aligned. */
TEST_F(batch, last_op_over_the_end_of_memory_not_decided)
{
	static const unsigned int there[] = { 1, 3, 7, 8, 9, 32, 56, 57, 63 };
	static const unsigned int whole[] = { 0, 1, 9, 15, 16, 63, 64, 100 };
	unsigned char part[sizeof(struct kretry_op)];
	struct kretry_op *ops;
	unsigned int count;
	size_t i, cut;

	for (i = 0; i < ARRAY_LEN(there) * ARRAY_LEN(whole); i++) {
		cut = there[i / ARRAY_LEN(whole)];
		count = whole[i % ARRAY_LEN(whole)];
		ops = kt_page_end(count * sizeof(*ops) + cut);
		fill(self, ops, count);
		memcpy(part, (char *)&ops[count], cut);
		EXPECT_EQ(count ? (int)count : -EFAULT, kt_batch(self->fd, ops, count + 1))
			TH_LOG("%u ops and %zu bytes", count, cut);
		EXPECT_EQ(count, count_decided(_metadata, self, ops, count));
		EXPECT_EQ(0, memcmp(part, (char *)&ops[count], cut));
	}
}

TEST_F(batch, read_only_array_efault_nothing_decided)
{
	struct kretry_op *ops;

	fill(self, self->ops, 200);
	ops = kt_read_only(self->ops, 200 * sizeof(*ops));
	EXPECT_EQ(-EFAULT, kt_batch(self->fd, ops, 200));
	EXPECT_EQ(0, count_decided(_metadata, self, ops, 200));
}

TEST_F(batch, array_that_turns_read_only_returns_the_number_done)
{
	const unsigned int per_page = 4096 / sizeof(struct kretry_op);

	fill(self, self->ops, 4 * per_page);
	ASSERT_EQ(0, mprotect(&self->ops[per_page], 3 * 4096, PROT_READ));
	EXPECT_EQ((int)per_page, kt_batch(self->fd, self->ops, 4 * per_page));
	EXPECT_EQ(per_page, count_decided(_metadata, self, self->ops, 4 * per_page));
}

/* The op behind the batch says whether the kernel has it. */
static int batch_for_ever(FIXTURE_DATA(batch) *self)
{
	volatile __u64 *under_way = &self->ops[self->info.max_batch].key;

	for (;;) {
		fill(self, self->ops, self->info.max_batch);
		*under_way = 1;
		if (kt_batch(self->fd, self->ops, self->info.max_batch) < 0)
			return 1;
		*under_way = 0;
	}
}

/* How many ops are decided; -1 if there is one that is neither decided nor as it was. */
static int count_whole(FIXTURE_DATA(batch) *self)
{
	unsigned int i;
	int decided = 0;

	for (i = 0; i < self->info.max_batch; i++) {
		if (is_decided(&self->ops[i], i))
			decided++;
		else if (!is_untouched(self, &self->ops[i], i))
			return -1;
	}
	return decided;
}

/* A batch that is killed stops on the way: the ops that it leaves are whole. */
TEST_F(batch, killed_process_gone_at_once_ops_whole)
{
	int i, decided, partly = 0;
	uint64_t killed;
	pid_t pid;

	for (i = 0; i < 10; i++) {
		pid = fork();
		if (!pid)
			_exit(batch_for_ever(self));
		kt_sleep(20 * MSEC + i * 1300 * USEC);
		killed = kt_now(CLOCK_MONOTONIC);
		kill(pid, SIGKILL);
		EXPECT_EQ(128 + SIGKILL, kt_wait(pid));
		EXPECT_GT(SEC, kt_now(CLOCK_MONOTONIC) - killed);
		if (!self->ops[self->info.max_batch].key)
			continue;
		decided = count_whole(self);
		EXPECT_LE(0, decided);
		partly += decided > 0 && decided < (int)self->info.max_batch;
	}
	EXPECT_LT(0, partly);
}

TEST_HARNESS_MAIN
