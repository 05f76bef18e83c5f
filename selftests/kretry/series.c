// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The delays of each strategy and jitter, as the module gives them: exact series and bounds. */
#include "harness.h"

FIXTURE(series) {
	int fd;
	struct kretry_policy policy;
};

FIXTURE_SETUP(series)
{
	self->fd = kt_open();
	ASSERT_LE(0, self->fd);
	kt_policy(&self->policy);
}

FIXTURE_TEARDOWN(series)
{
	close(self->fd);
}

static const uint32_t late_attempts[] = {
	10, 31, 32, 61, 62, 63, 64, 65, 70, 127, 128, 1023, 1024, 1025, 1026, 65535, 65536,
	0x7ffffffe, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
};

/* The first @count delays are @want times @unit, and those after the end of time are @last. */
static void expect_series(struct __test_metadata *_metadata, FIXTURE_DATA(series) *self,
			  const uint32_t *want, size_t count, uint64_t unit, uint64_t last)
{
	int id = kt_create(self->fd, &self->policy);
	size_t i;

	ASSERT_LT(0, id);
	for (i = 0; i < count; i++)
		EXPECT_EQ(want[i] * unit, (uint64_t)kt_delay(self->fd, id, i))
			TH_LOG("attempt %zu", i);
	for (i = 0; i < ARRAY_LEN(late_attempts); i++)
		EXPECT_EQ(last, (uint64_t)kt_delay(self->fd, id, late_attempts[i]))
			TH_LOG("attempt %u", late_attempts[i]);
}

TEST_F(series, fixed_always_base)
{
	static const uint32_t want[] = { 100, 100, 100, 100, 100 };

	expect_series(_metadata, self, want, ARRAY_LEN(want), MSEC, 100 * MSEC);
}

TEST_F(series, linear_grows_by_base)
{
	static const uint32_t want[] = { 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1000 };

	self->policy.backoff.strategy = KRETRY_LINEAR;
	self->policy.backoff.cap_ns = SEC;
	expect_series(_metadata, self, want, ARRAY_LEN(want), MSEC, SEC);
}

/* The very first failure waits the base, not nothing. */
TEST_F(series, exponential_first_failure_waits_base_then_doubles)
{
	static const uint32_t want[] = { 100, 200, 400, 800, 1600 };

	kt_exponential(&self->policy, 100 * MSEC, 30 * SEC);
	expect_series(_metadata, self, want, ARRAY_LEN(want), MSEC, 30 * SEC);
}

TEST_F(series, exponential_stays_at_cap_for_ever)
{
	static const uint32_t want[] = { 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30, 30 };

	kt_exponential(&self->policy, 2 * SEC, 30 * SEC);
	expect_series(_metadata, self, want, ARRAY_LEN(want), SEC, 30 * SEC);
}

TEST_F(series, exponential_by_one_and_a_half_rounds_down)
{
	static const uint32_t want[] = {
		500000, 750000, 1125000, 1687500, 2531250, 3796875, 5000000
	};

	kt_exponential(&self->policy, 500 * MSEC, 5 * SEC);
	self->policy.backoff.multiplier_ppm = 1500000;
	expect_series(_metadata, self, want, ARRAY_LEN(want), USEC, 5 * SEC);
}

TEST_F(series, exponential_without_cap_saturates)
{
	static const uint32_t want[] = { 1, 2, 4, 8 };
	int id;

	kt_exponential(&self->policy, 1, KRETRY_NS_MAX);
	id = kt_create(self->fd, &self->policy);
	EXPECT_EQ(1LL << 62, kt_delay(self->fd, id, 62));
	EXPECT_EQ(KRETRY_NS_MAX, kt_delay(self->fd, id, 63));
	EXPECT_EQ(KRETRY_NS_MAX, kt_delay(self->fd, id, 0xffffffff));
	self->policy.backoff.cap_ns = 1000;
	expect_series(_metadata, self, want, ARRAY_LEN(want), 1, 1000);
}

TEST_F(series, table_last_entry_repeats_under_cap)
{
	static const uint32_t want[] = { 1, 2, 4, 8, 9, 9, 9 };
	static const uint64_t table[] = { SEC, 2 * SEC, 4 * SEC, 8 * SEC, 16 * SEC };

	self->policy.backoff.strategy = KRETRY_TABLE;
	self->policy.backoff.base_ns = 0;
	self->policy.backoff.cap_ns = 9 * SEC;
	self->policy.backoff.table_len = ARRAY_LEN(table);
	memcpy(self->policy.backoff.table_ns, table, sizeof(table));
	expect_series(_metadata, self, want, ARRAY_LEN(want), SEC, 9 * SEC);
}

TEST_F(series, table_of_64_entries_all_used)
{
	int id, i;

	self->policy.backoff.strategy = KRETRY_TABLE;
	self->policy.backoff.base_ns = 0;
	self->policy.backoff.table_len = KRETRY_TABLE_MAX;
	for (i = 0; i < KRETRY_TABLE_MAX; i++)
		self->policy.backoff.table_ns[i] = (i + 1) * MSEC;
	id = kt_create(self->fd, &self->policy);
	for (i = 0; i < KRETRY_TABLE_MAX + 5; i++)
		EXPECT_EQ((i < 64 ? i + 1 : 64) * MSEC, (uint64_t)kt_delay(self->fd, id, i));
}

TEST_F(series, floor_lifts_the_first_delays)
{
	static const uint32_t want[] = { 300, 300, 400, 800 };

	kt_exponential(&self->policy, 100 * MSEC, SEC);
	self->policy.backoff.floor_ns = 300 * MSEC;
	expect_series(_metadata, self, want, ARRAY_LEN(want), MSEC, SEC);
}

TEST_F(series, throttled_has_its_own_base)
{
	struct kretry_op op;
	int id;

	kt_exponential(&self->policy, 100 * MSEC, 10 * SEC);
	self->policy.backoff.base_throttled_ns = SEC;
	id = kt_create(self->fd, &self->policy);
	op = kt_op(id, KRETRY_EVENT_THROTTLED);
	op.attempt = 2;
	ASSERT_EQ(0, kt_step(self->fd, &op));
	EXPECT_EQ(4 * SEC, op.delay_ns);
	EXPECT_EQ(400 * MSEC, kt_delay(self->fd, id, 2));
}

/* -------- bounds of what is drawn -------- */

struct bounds {
	uint64_t least, most;
};

static struct bounds draw(FIXTURE_DATA(series) *self, int id, uint32_t attempt, uint64_t previous,
			  int draws)
{
	struct bounds seen = { .least = ~0ULL };
	struct kretry_op op;

	while (draws--) {
		op = kt_op(id, KRETRY_EVENT_TRANSIENT);
		op.attempt = attempt;
		op.delay_ns = previous;
		if (kt_step(self->fd, &op) || op.verdict != KRETRY_RETRY)
			return (struct bounds) { 0, ~0ULL };
		seen.least = op.delay_ns < seen.least ? op.delay_ns : seen.least;
		seen.most = op.delay_ns > seen.most ? op.delay_ns : seen.most;
	}
	return seen;
}

/* 1000 draws lie within the range and come close to both of its ends. */
static void expect_range(struct __test_metadata *_metadata, FIXTURE_DATA(series) *self, int id,
			 uint32_t attempt, uint64_t lo, uint64_t hi)
{
	struct bounds seen = draw(self, id, attempt, 0, 1000);
	uint64_t edge = (hi - lo) / 20;

	EXPECT_LE(lo, seen.least)
		TH_LOG("attempt %u", attempt);
	EXPECT_GE(lo + edge, seen.least)
		TH_LOG("attempt %u", attempt);
	EXPECT_GE(hi, seen.most)
		TH_LOG("attempt %u", attempt);
	EXPECT_LE(hi - edge, seen.most)
		TH_LOG("attempt %u", attempt);
}

TEST_F(series, jitter_each_kind_within_its_window)
{
	static const struct {
		unsigned int jitter;
		uint32_t ppm;
		uint64_t lo, hi;	/* of the second delay, 200 ms */
		uint64_t cap_lo;	/* of those at the cap, 1 s */
	} rows[] = {
		{ KRETRY_JITTER_FULL, 0, MSEC, 200 * MSEC, MSEC },
		{ KRETRY_JITTER_EQUAL, 0, 100 * MSEC, 200 * MSEC, 500 * MSEC },
		{ KRETRY_JITTER_PROPORTIONAL, 500000, 100 * MSEC, 300 * MSEC, MSEC },
		{ KRETRY_JITTER_PROPORTIONAL, 100000, 180 * MSEC, 220 * MSEC, 800 * MSEC },
		{ KRETRY_JITTER_ADDITIVE, 500000, 200 * MSEC, 300 * MSEC, 500 * MSEC },
		{ KRETRY_JITTER_ADDITIVE, 3000000, 200 * MSEC, 800 * MSEC, MSEC },
	};
	size_t i;
	int id;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		kt_exponential(&self->policy, 100 * MSEC, SEC);
		self->policy.backoff.jitter = rows[i].jitter;
		self->policy.backoff.jitter_ppm = rows[i].ppm;
		self->policy.backoff.floor_ns = MSEC;
		id = kt_create(self->fd, &self->policy);
		ASSERT_LT(0, id);
		expect_range(_metadata, self, id, 1, rows[i].lo, rows[i].hi);
		expect_range(_metadata, self, id, 50, rows[i].cap_lo, SEC);
		expect_range(_metadata, self, id, 0xffffffff, rows[i].cap_lo, SEC);
	}
}

TEST_F(series, jitter_at_any_attempt_within_floor_and_cap)
{
	unsigned int jitter;
	struct bounds seen;
	size_t i;
	int id;

	for (jitter = KRETRY_JITTER_NONE; jitter <= KRETRY_JITTER_ADDITIVE; jitter++) {
		kt_exponential(&self->policy, 2 * SEC, 30 * SEC);
		self->policy.backoff.jitter = jitter;
		self->policy.backoff.jitter_ppm =
			jitter >= KRETRY_JITTER_PROPORTIONAL ? KRETRY_PPM : 0;
		self->policy.backoff.floor_ns = MSEC;
		id = kt_create(self->fd, &self->policy);
		for (i = 0; i < ARRAY_LEN(late_attempts); i++) {
			seen = draw(self, id, late_attempts[i], 0, 20);
			EXPECT_LE(MSEC, seen.least);
			EXPECT_GE(30 * SEC, seen.most);
		}
	}
}

TEST_F(series, decorrelated_between_base_and_three_times_the_last)
{
	struct bounds seen;
	int id;

	self->policy.backoff.strategy = KRETRY_DECORRELATED;
	self->policy.backoff.base_ns = SEC;
	id = kt_create(self->fd, &self->policy);
	expect_range(_metadata, self, id, 0, SEC, 3 * SEC);
	seen = draw(self, id, 1, 2 * SEC, 1000);
	EXPECT_LE(SEC, seen.least);
	EXPECT_GE(6 * SEC, seen.most);
	EXPECT_LE(5 * SEC, seen.most);
	seen = draw(self, id, 9, ~0ULL, 1000);
	EXPECT_LE(SEC, seen.least);
	EXPECT_GE(10 * SEC, seen.most);
	EXPECT_LE(9 * SEC, seen.most);
}

/* The textbook form gives the cap about half of the time. */
TEST_F(series, decorrelated_chain_rarely_at_the_cap)
{
	struct kretry_op op;
	int i, at_cap = 0;

	self->policy.backoff.strategy = KRETRY_DECORRELATED;
	self->policy.backoff.base_ns = SEC;
	op = kt_op(kt_create(self->fd, &self->policy), 0);
	for (i = 0; i < 10000; i++) {
		op.event = KRETRY_EVENT_TRANSIENT;
		ASSERT_EQ(0, kt_step(self->fd, &op));
		ASSERT_GE(10 * SEC, op.delay_ns);
		at_cap += op.delay_ns == 10 * SEC;
	}
	EXPECT_GT(100, at_cap);
}

TEST_F(series, slotted_whole_slots_as_many_as_the_attempt_allows)
{
	static const struct {
		uint32_t attempt;
		uint64_t last;
	} rows[] = { { 0, 1 }, { 1, 3 }, { 2, 7 }, { 8, 511 }, { 9, 1023 }, { 0xffffffff, 1023 } };
	const uint64_t slot = 51200;
	int64_t delay;
	uint64_t most;
	size_t i;
	int id, j;

	self->policy.backoff.strategy = KRETRY_SLOTTED;
	self->policy.backoff.base_ns = slot;
	id = kt_create(self->fd, &self->policy);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (j = 0, most = 0; j < 1000; j++) {
			delay = kt_delay(self->fd, id, rows[i].attempt);
			ASSERT_LE(0, delay);
			EXPECT_EQ(0, delay % slot);
			most = (uint64_t)delay > most ? (uint64_t)delay : most;
		}
		EXPECT_GE(rows[i].last * slot, most);
		EXPECT_LE((rows[i].last - rows[i].last / 20) * slot, most);
	}
}

TEST_HARNESS_MAIN
