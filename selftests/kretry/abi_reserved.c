// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Reserved fields, unknown bits and values out of range: each alone is EINVAL, nothing happens. */
#include "harness.h"

FIXTURE(reserved) {
	int fd;
	int policy;
	struct kretry_policy valid;
};

FIXTURE_SETUP(reserved)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&self->valid);
	self->policy = kt_create(self->fd, &self->valid);
	ASSERT_LT(0, self->policy);
}

FIXTURE_TEARDOWN(reserved)
{
	close(self->fd);
}

static void expect_refused(struct __test_metadata *_metadata, FIXTURE_DATA(reserved) *self,
			   struct kretry_policy *policy, const char *what)
{
	struct kretry_policy before = *policy;

	EXPECT_EQ(-EINVAL, kt_create(self->fd, policy))
		TH_LOG("%s", what);
	EXPECT_EQ(0, memcmp(&before, policy, sizeof(before)))
		TH_LOG("%s", what);
	EXPECT_EQ(1, kt_policies(self->fd))
		TH_LOG("%s", what);
}

/* Bits of a policy that have no meaning: byte offset of a little-endian field, first bit, last. */
TEST_F(reserved, create_each_unknown_bit_einval)
{
	static const struct {
		const char *what;
		size_t offset;
		unsigned int first, last;
	} rows[] = {
#define BITS(field, first, last) { #field, offsetof(struct kretry_policy, field), first, last }
		BITS(flags, 7, 31),
		BITS(open_flags, 2, 31),
		BITS(reserved, 0, 31),
		BITS(backoff.reserved, 0, 7),
		BITS(backoff.reserved2, 0, 31),
		BITS(budget.flags, 1, 31),
		BITS(budget.reserved, 0, 31),
		BITS(breaker.flags, 2, 31),
		BITS(breaker.reserved, 0, 7),
#undef BITS
	};
	struct kretry_policy policy;
	unsigned int bit;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (bit = rows[i].first; bit <= rows[i].last; bit++) {
			kt_policy(&policy);
			((unsigned char *)&policy)[rows[i].offset + bit / 8] |= 1U << bit % 8;
			expect_refused(_metadata, self, &policy, rows[i].what);
		}
	}
}

/* Every byte of what the other strategies and jitters would use. */
TEST_F(reserved, create_field_the_strategy_does_not_use_einval)
{
	static const struct {
		const char *what;
		size_t offset, len;
	} rows[] = {
#define BYTES(field)	{ #field, offsetof(struct kretry_policy, field), \
			  sizeof(((struct kretry_policy *)0)->field) }
		BYTES(backoff.table_len),
		BYTES(backoff.table_ns),
		BYTES(backoff.multiplier_ppm),
		BYTES(backoff.jitter_ppm),
		BYTES(uid),
		BYTES(gid),
		BYTES(mode),
		BYTES(linger_ns),
#undef BYTES
	};
	struct kretry_policy policy;
	size_t i, byte;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (byte = 0; byte < rows[i].len; byte++) {
			kt_policy(&policy);
			((unsigned char *)&policy)[rows[i].offset + byte] = 1;
			expect_refused(_metadata, self, &policy, rows[i].what);
		}
	}
}

TEST_F(reserved, create_value_out_of_range_einval)
{
#define ROW(field, value)	do {					\
	kt_policy(&policy);						\
	policy.field = (value);						\
	expect_refused(_metadata, self, &policy, #field " = " #value);	\
} while (0)
	struct kretry_policy policy;
	unsigned int i;

	for (i = 0; i < 300; i++)
		if (i != CLOCK_MONOTONIC && i != CLOCK_BOOTTIME)
			ROW(clockid, i);
	ROW(clockid, 0xffffffff);
	ROW(backoff.strategy, 0);
	for (i = KRETRY_TABLE + 1; i < 256; i++)
		ROW(backoff.strategy, i);
	for (i = KRETRY_JITTER_ADDITIVE + 1; i < 256; i++)
		ROW(backoff.jitter, i);
	ROW(backoff.base_ns, policy.backoff.cap_ns + 1);
	ROW(backoff.base_throttled_ns, policy.backoff.cap_ns + 1);
	ROW(backoff.floor_ns, policy.backoff.cap_ns + 1);
	ROW(backoff.cap_ns, KRETRY_NS_MAX + 1);
	ROW(backoff.cap_ns, ~0ULL);
	ROW(backoff.base_ns, ~0ULL);
	ROW(max_elapsed_ns, KRETRY_NS_MAX + 1);
	ROW(reset_after_ns, KRETRY_NS_MAX + 1);
	ROW(slack_ns, KRETRY_NS_MAX + 1);
	ROW(hint_limit_ns, KRETRY_NS_MAX + 1);
	ROW(hint_over_own_ns, KRETRY_NS_MAX + 1);
	ROW(linger_ns, KRETRY_NS_MAX + 1);
	ROW(open_flags, KRETRY_OPEN_GLOBAL);
	ROW(flags, KRETRY_POLICY_WAIT_OPEN);
	ROW(flags, KRETRY_POLICY_PACE_ALL);
	ROW(pacing.horizon_ns, 1);
	ROW(pacing.pace_ns, KRETRY_NS_MAX + 1);
	ROW(name[1], 'a');
	ROW(name[KRETRY_NAME_MAX - 1], 'a');
#undef ROW
}

/* Where there is no budget or breaker every byte of it is reserved; where there is, its range. */
TEST_F(reserved, create_budget_or_breaker_value_out_of_range_einval)
{
#define ROW(field, value)	do {					\
	kt_policy(&policy);						\
	policy.budget.capacity_utok = KRETRY_UTOK;			\
	policy.breaker = breaker;					\
	policy.field = (value);						\
	expect_refused(_metadata, self, &policy, #field " = " #value);	\
} while (0)
	static const struct kretry_breaker breaker = {
		.probes = 1, .ratio_ppm = KRETRY_PPM, .open_ns = SEC, .open_cap_ns = SEC,
		.window_ns = SEC, .probe_timeout_ns = SEC,
	};
	struct kretry_policy policy;
	size_t i;

	for (i = 8; i < sizeof(policy.budget); i++) {
		kt_policy(&policy);
		((unsigned char *)&policy.budget)[i] = 1;
		expect_refused(_metadata, self, &policy, "no budget");
	}
	for (i = 0; i < sizeof(policy.breaker); i++) {
		kt_policy(&policy);
		((unsigned char *)&policy.breaker)[i] = 1;
		if (!policy.breaker.probes)
			expect_refused(_metadata, self, &policy, "no breaker");
	}
	ROW(budget.initial_utok, KRETRY_UTOK + 1);
	ROW(budget.reserve_cap_utok, KRETRY_UTOK + 1);
	ROW(budget.capacity_utok, KRETRY_NS_MAX + 1);
	ROW(budget.refill_utok_per_s, ~0ULL);
	ROW(budget.cost_unknown_utok, KRETRY_NS_MAX + 1);
	ROW(budget.window_ns, 9);
	ROW(breaker.probes, 256);
	ROW(breaker.consecutive, 65536);
	ROW(breaker.ratio_ppm, KRETRY_PPM + 1);
	ROW(breaker.half_open_ppm, KRETRY_PPM + 1);
	ROW(breaker.open_growth_ppm, KRETRY_PPM - 1);
	ROW(breaker.successes_to_close, 256);
	ROW(breaker.min_reporters, 9);
	ROW(breaker.throttled, 3);
	ROW(breaker.throttled_half_open, 3);
	ROW(breaker.open_ns, 0);
	ROW(breaker.open_ns, SEC + 1);
	ROW(breaker.open_cap_ns, KRETRY_NS_MAX + 1);
	ROW(breaker.window_ns, 0);
	ROW(breaker.window_ns, 9);
	ROW(breaker.window_calls, 9);
	ROW(breaker.window_calls, 100);
	ROW(breaker.probe_timeout_ns, 0);
	ROW(breaker.slow_ns, 1);
	ROW(breaker.ramp_ns, KRETRY_NS_MAX + 1);
#undef ROW
}

TEST_F(reserved, create_name_without_end_or_padding_einval)
{
	struct kretry_policy policy;

	kt_policy(&policy);
	memset(policy.name, 'a', sizeof(policy.name));
	expect_refused(_metadata, self, &policy, "no NUL");
	kt_policy(&policy);
	policy.name[0] = 'a';
	policy.name[2] = 'a';
	expect_refused(_metadata, self, &policy, "not padded with NUL");
}

TEST_F(reserved, create_strategy_without_its_parameters_einval)
{
	static const struct kretry_backoff rows[] = {
		{ .strategy = KRETRY_EXPONENTIAL, .cap_ns = SEC, .base_ns = 1 },
		{ .strategy = KRETRY_EXPONENTIAL, .cap_ns = SEC, .base_ns = 1,
		  .multiplier_ppm = KRETRY_PPM - 1 },
		{ .strategy = KRETRY_SLOTTED, .cap_ns = SEC },
		{ .strategy = KRETRY_SLOTTED, .cap_ns = 5, .base_ns = 3, .floor_ns = 4 },
		{ .strategy = KRETRY_SLOTTED, .cap_ns = SEC, .base_ns = 1,
		  .jitter = KRETRY_JITTER_FULL },
		{ .strategy = KRETRY_DECORRELATED, .cap_ns = SEC, .base_ns = 1,
		  .jitter = KRETRY_JITTER_EQUAL },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC, .table_len = KRETRY_TABLE_MAX + 1 },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC, .table_len = 255 },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC, .table_len = 1, .base_ns = 1 },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC, .table_len = 1, .base_throttled_ns = 1 },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC, .table_len = 2, .table_ns = { 2, 1 } },
		{ .strategy = KRETRY_TABLE, .cap_ns = 1, .table_len = 1, .table_ns = { 2 } },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC, .table_len = 1, .table_ns = { 1, 2 } },
		{ .strategy = KRETRY_TABLE, .cap_ns = SEC, .table_len = 1,
		  .table_ns = { KRETRY_NS_MAX + 1 } },
		{ .strategy = KRETRY_FIXED, .cap_ns = SEC, .jitter = KRETRY_JITTER_FULL,
		  .jitter_ppm = 1 },
		{ .strategy = KRETRY_FIXED, .cap_ns = SEC, .jitter = KRETRY_JITTER_PROPORTIONAL,
		  .jitter_ppm = KRETRY_PPM + 1 },
	};
	struct kretry_policy policy;
	char what[16];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		kt_policy(&policy);
		policy.backoff = rows[i];
		snprintf(what, sizeof(what), "row %zu", i);
		expect_refused(_metadata, self, &policy, what);
	}
}

TEST_F(reserved, close_any_bit_but_size_and_id_einval)
{
	struct kretry_policy_ref ref, before;
	size_t bit;

	for (bit = offsetof(struct kretry_policy_ref, open_flags) * 8; bit < sizeof(ref) * 8;
	     bit++) {
		memset(&ref, 0, sizeof(ref));
		ref.size = sizeof(ref);
		ref.id = self->policy;
		((unsigned char *)&ref)[bit / 8] |= 1U << bit % 8;
		before = ref;
		EXPECT_EQ(-EINVAL, kt_ioctl(self->fd, KRETRY_IOC_POLICY_CLOSE, &ref))
			TH_LOG("bit %zu", bit);
		EXPECT_EQ(0, memcmp(&before, &ref, sizeof(ref)));
	}
	EXPECT_EQ(1, kt_policies(self->fd));
}

TEST_F(reserved, step_each_unknown_event_or_flag_einval)
{
	struct kretry_op op, before;
	unsigned int i;

	for (i = 0; i < 256 + 2; i++) {
		op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
		op.event = i < 256 ? i : op.event;
		op.flags = i < 256 ? 0 : 0x40U << (i - 256);
		if (op.event && op.event <= KRETRY_EVENT_PERMANENT && !op.flags)
			continue;
		op.verdict = POISON;
		before = op;
		EXPECT_EQ(-EINVAL, kt_step(self->fd, &op))
			TH_LOG("event %u flags %#x", before.event, before.flags);
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	}
}

TEST_F(reserved, step_hint_where_there_is_none_einval)
{
	static const unsigned int successes[] = {
		KRETRY_EVENT_BEGIN, KRETRY_EVENT_OK, KRETRY_EVENT_CANCELLED,
	};
	struct kretry_op op, before;
	size_t i;

	for (i = 0; i < 3 * ARRAY_LEN(successes) + 1; i++) {
		op = kt_op(self->policy, i / 3 < 3 ? successes[i / 3] : KRETRY_EVENT_TRANSIENT);
		op.hint_ns = i % 3 == 0;
		op.flags = i % 3 == 1 ? KRETRY_OP_HINT : i % 3 == 2 ? KRETRY_OP_NO_RETRY : 0;
		before = op;
		EXPECT_EQ(-EINVAL, kt_step(self->fd, &op))
			TH_LOG("row %zu", i);
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
	}
}

/* What the kernel wrote last time comes back with the op. */
TEST_F(reserved, step_output_bits_ignored_on_input)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);

	op.flags = 0xff00;
	op.verdict = 0xff;
	op.deadline_ns = ~0ULL;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(KRETRY_RETRY, op.verdict);
	EXPECT_EQ(0, op.flags);
	EXPECT_EQ(100 * MSEC, op.delay_ns);
}

TEST_F(reserved, step_unknown_policy_enoent)
{
	static const uint32_t ids[] = { 0, 0x7fffffff, 0x80000000, 0xffffffff };
	struct kretry_op op, before;
	size_t i;

	for (i = 0; i < ARRAY_LEN(ids); i++) {
		op = kt_op(ids[i], KRETRY_EVENT_TRANSIENT);
		before = op;
		EXPECT_EQ(-ENOENT, kt_step(self->fd, &op));
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
		EXPECT_EQ(-ENOENT, kt_close(self->fd, ids[i]));
	}
}

TEST_F(reserved, cancel_each_flag_einval_op_stays)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT);
	struct kretry_cancel cancel, before;
	unsigned int i;

	op.flags = KRETRY_OP_QUEUE;
	op.user_data = 7;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	for (i = 0; i < 32; i++) {
		memset(&cancel, POISON, sizeof(cancel));
		cancel.size = sizeof(cancel);
		cancel.flags = 1U << i;
		cancel.user_data = 7;
		before = cancel;
		EXPECT_EQ(-EINVAL, kt_ioctl(self->fd, KRETRY_IOC_CANCEL, &cancel));
		EXPECT_EQ(0, memcmp(&before, &cancel, sizeof(cancel)));
	}
	cancel.flags = 0;
	EXPECT_EQ(0, kt_ioctl(self->fd, KRETRY_IOC_CANCEL, &cancel));
	EXPECT_EQ(7, cancel.op.user_data);
}

TEST_F(reserved, batch_each_flag_or_other_op_size_einval)
{
	struct kretry_op op = kt_op(self->policy, KRETRY_EVENT_TRANSIENT), before = op;
	struct kretry_batch batch = { .size = sizeof(batch), .count = 1, .ops = (uintptr_t)&op };
	unsigned int i;

	for (i = 0; i < 32; i++) {
		batch.op_size = sizeof(op);
		batch.flags = 1U << i;
		EXPECT_EQ(-EINVAL, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH, &batch));
	}
	batch.flags = 0;
	for (i = 0; i < 256; i++) {
		batch.op_size = i;
		if (i != sizeof(op))
			EXPECT_EQ(-EINVAL, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH, &batch));
	}
	batch.op_size = 0xffffffff;
	EXPECT_EQ(-EINVAL, kt_ioctl(self->fd, KRETRY_IOC_STEP_BATCH, &batch));
	EXPECT_EQ(0, memcmp(&before, &op, sizeof(op)));
}

TEST_F(reserved, shutdown_any_argument_einval_nothing_dropped)
{
	uintptr_t bit;

	for (bit = 1; bit; bit <<= 1)
		EXPECT_EQ(-EINVAL, kt_ioctl(self->fd, KRETRY_IOC_SHUTDOWN, (void *)bit));
	EXPECT_EQ(1, kt_policies(self->fd));
	EXPECT_EQ(100 * MSEC, kt_delay(self->fd, self->policy, 0));
}

TEST_HARNESS_MAIN
