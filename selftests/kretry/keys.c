// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Keys are bounded: what says nothing is forgotten, what says something never is. */
#include "harness.h"
#include "shared.h"

#define MAX	8

FIXTURE(keys) {
	struct kt_party me;
	struct kretry_policy policy;	/* 10 tokens, opens after 2 failures for 100 s */
	int id;
};

/* Loaded anew with room for eight keys. */
FIXTURE_SETUP(keys)
{
	ASSERT_EQ(0, kt_unload());
	ASSERT_EQ(0, kt_load("max_keys=8"));
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_budget(&self->policy, 10);
	kt_breaker(&self->policy, 2, 100 * SEC, 1);
}

FIXTURE_TEARDOWN(keys)
{
	kt_leave(&self->me);
	EXPECT_EQ(0, kt_unload());
	EXPECT_EQ(0, kt_load(""));
}

static int create(FIXTURE_DATA(keys) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	return self->id;
}

static int begin(FIXTURE_DATA(keys) *self, uint64_t key, struct kretry_op *op)
{
	return kt_begin(&self->me, self->id, key, op);
}

static bool shares(FIXTURE_DATA(keys) *self, uint64_t key)
{
	struct kretry_op op;

	begin(self, key, &op);
	return op.flags & KRETRY_OP_SHARED_KEY;
}

/* Charge each key of the range with one retry. */
static int charge(FIXTURE_DATA(keys) *self, uint64_t first, uint64_t last)
{
	int granted = 0;

	for (; first <= last; first++)
		granted += kt_event(&self->me, self->id, first, KRETRY_EVENT_TRANSIENT) ==
			   KRETRY_RETRY;
	return granted;
}

TEST_F(keys, limit_is_a_parameter_and_shows_in_info)
{
	struct kretry_info info;
	struct kretry_stat stat;

	ASSERT_EQ(0, kt_info(self->me.fd, &info));
	EXPECT_EQ(MAX, info.max_keys);
	ASSERT_LT(0, create(self));
	EXPECT_EQ(0, kt_stat(&self->me, self->id).keys);
	EXPECT_EQ(3, charge(self, 1, 3));
	EXPECT_EQ(3, kt_stat(&self->me, self->id).keys);
	/* Looking makes no key, and shows what a new one would have. */
	stat = kt_stat_key(&self->me, self->id, 99);
	EXPECT_EQ(10 * KRETRY_UTOK, stat.balance_utok);
	EXPECT_EQ(0, stat.keys);
	EXPECT_EQ(3, kt_stat(&self->me, self->id).keys);
}

TEST_F(keys, each_its_own_state_any_number)
{
	static const uint64_t keys[] = { 0, 1, 2, 1ULL << 32, 1ULL << 63, ~0ULL, ~0ULL - 1 };
	size_t i;

	ASSERT_LT(0, create(self));
	for (i = 0; i < ARRAY_LEN(keys); i++)
		EXPECT_EQ(1, kt_fail(&self->me, self->id, keys[i], 1));
	for (i = 0; i < ARRAY_LEN(keys); i++) {
		EXPECT_EQ(9 * KRETRY_UTOK, kt_stat_key(&self->me, self->id, keys[i]).balance_utok);
		EXPECT_EQ(1, kt_stat_key(&self->me, self->id, keys[i]).streak);
	}
	EXPECT_EQ(ARRAY_LEN(keys), kt_stat(&self->me, self->id).keys);
}

TEST_F(keys, without_state_forgotten_for_others)
{
	uint64_t key;

	ASSERT_LT(0, create(self));
	for (key = 0; key < 1000; key++)
		EXPECT_FALSE(shares(self, key));
	EXPECT_GE(MAX, kt_stat(&self->me, self->id).keys);
	EXPECT_EQ(1000, kt_stat(&self->me, self->id).keys + kt_stat(&self->me, self->id).evicted);
}

TEST_F(keys, with_state_never_forgotten_further_ones_share)
{
	uint64_t key;

	ASSERT_LT(0, create(self));
	EXPECT_EQ(MAX, charge(self, 1, MAX));
	for (key = MAX + 1; key < 200; key++)
		EXPECT_TRUE(shares(self, key));
	for (key = 1; key <= MAX; key++) {
		EXPECT_FALSE(shares(self, key));
		EXPECT_EQ(9 * KRETRY_UTOK, kt_stat_key(&self->me, self->id, key).balance_utok);
	}
	EXPECT_EQ(MAX, kt_stat(&self->me, self->id).keys);
	EXPECT_EQ(0, kt_stat(&self->me, self->id).evicted);
}

/* The overflow is one state: what one of its keys spends, the other does not have. */
TEST_F(keys, overflow_one_budget_and_one_breaker_for_all)
{
	self->policy.breaker.consecutive = 20;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(MAX, charge(self, 1, MAX));
	EXPECT_EQ(4, kt_fail(&self->me, self->id, 100, 4));
	EXPECT_EQ(6, kt_fail(&self->me, self->id, 101, 10));
	EXPECT_EQ(KRETRY_STOP_BUDGET,
		  kt_event(&self->me, self->id, 102, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(1, kt_fail(&self->me, self->id, 1, 1));
	EXPECT_EQ(0, kt_fail(&self->me, self->id, 103, 5));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&self->me, self->id, 104, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, 1, KRETRY_EVENT_BEGIN));
}

TEST_F(keys, state_that_has_healed_forgotten_again)
{
	self->policy.budget.refill_utok_per_s = KRETRY_UTOK;
	self->policy.budget.reserve_cap_utok = 10 * KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(MAX, charge(self, 1, MAX));
	EXPECT_TRUE(shares(self, 100));
	kt_sleep(2 * SEC);
	/* Their balance is back, but a failure in the streak is state too. */
	EXPECT_TRUE(shares(self, 100));
	EXPECT_EQ(KRETRY_DONE, kt_event(&self->me, self->id, 3, KRETRY_EVENT_OK));
	EXPECT_FALSE(shares(self, 100));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).evicted);
	EXPECT_EQ(MAX, kt_stat(&self->me, self->id).keys);
	EXPECT_EQ(1, kt_stat_key(&self->me, self->id, 4).streak);
}

/* Each of the ways to have state alone: open, a lease, cooling, a slot taken, forced. */
TEST_F(keys, open_leased_cooling_paced_or_forced_kept)
{
	struct kretry_op op, probe;
	uint64_t key;

	self->policy.flags = KRETRY_POLICY_HINT_SHARED | KRETRY_POLICY_PACE_ALL;
	self->policy.pacing.pace_ns = 10000 * SEC;
	self->policy.pacing.horizon_ns = 20000 * SEC;
	self->policy.budget.initial_utok = 0;
	ASSERT_LT(0, create(self));
	kt_fail(&self->me, self->id, 1, 2);
	kt_event(&self->me, self->id, 2, KRETRY_EVENT_TRANSIENT);
	kt_event(&self->me, self->id, 2, KRETRY_EVENT_TRANSIENT);
	op = kt_op(self->id, 0);
	op.key = 3;
	op.flags = KRETRY_OP_HINT;
	op.hint_ns = 1000 * SEC;
	kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED);
	EXPECT_EQ(KRETRY_GO, begin(self, 4, &op));
	EXPECT_EQ(0, kt_force_key(&self->me, self->id, 5, KRETRY_MODE_METRICS_ONLY));
	kt_sleep(101 * SEC);
	EXPECT_EQ(KRETRY_GO, begin(self, 2, &probe));
	for (key = 100; key < 300; key++)
		kt_event(&self->me, self->id, key, KRETRY_EVENT_CANCELLED);
	EXPECT_NE(KRETRY_CLOSED, kt_stat_key(&self->me, self->id, 1).state);
	EXPECT_EQ(1, kt_stat_key(&self->me, self->id, 2).leases);
	EXPECT_NE(0, kt_stat_key(&self->me, self->id, 3).cooling_ns);
	EXPECT_NE(0, kt_stat_key(&self->me, self->id, 4).pace_next_ns);
	EXPECT_EQ(KRETRY_MODE_METRICS_ONLY, kt_stat_key(&self->me, self->id, 5).mode);
	EXPECT_LE(190, kt_stat(&self->me, self->id).evicted);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &probe, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, kt_stat_key(&self->me, self->id, 2).state);
}

/* One of two probes has closed the breaker, the other is still out: not yet as good as new. */
TEST_F(keys, closed_with_a_lease_left_kept_until_it_is_back)
{
	struct kretry_op first, second;
	uint64_t key;

	self->policy.breaker.probes = 2;
	self->policy.budget.initial_utok = 0;
	ASSERT_LT(0, create(self));
	kt_fail(&self->me, self->id, 1, 2);
	kt_sleep(101 * SEC);
	ASSERT_EQ(KRETRY_GO, begin(self, 1, &first));
	ASSERT_EQ(KRETRY_GO, begin(self, 1, &second));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &first, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, kt_stat_key(&self->me, self->id, 1).state);
	for (key = 100; key < 200; key++)
		EXPECT_FALSE(shares(self, key));
	EXPECT_EQ(1, kt_stat_key(&self->me, self->id, 1).keys);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &second, KRETRY_EVENT_CANCELLED));
	for (key = 100; key < 200; key++)
		EXPECT_FALSE(shares(self, key));
	EXPECT_EQ(0, kt_stat_key(&self->me, self->id, 1).keys);
}

/* A generation of a key that was forgotten and made anew is never valid again. */
TEST_F(keys, forgotten_and_made_anew_old_results_count_nowhere)
{
	struct kretry_op late;
	uint64_t key;

	ASSERT_LT(0, create(self));
	EXPECT_EQ(KRETRY_GO, begin(self, 1, &late));
	for (key = 100; key < 200; key++)
		EXPECT_FALSE(shares(self, key));
	EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, 1, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &late, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(0, kt_stat_key(&self->me, self->id, 1).streak);
}

TEST_F(keys, two_policies_bounded_each_by_itself)
{
	int first, second;

	first = create(self);
	EXPECT_EQ(MAX, charge(self, 1, MAX));
	second = create(self);
	EXPECT_EQ(MAX, charge(self, 1, MAX));
	EXPECT_FALSE(shares(self, 5));
	EXPECT_EQ(MAX, kt_stat(&self->me, first).keys);
	EXPECT_EQ(MAX, kt_stat(&self->me, second).keys);
}

TEST_F(keys, bad_parameter_refused)
{
	static const char * const parameters[] = {
		"max_keys=0", "max_keys=-1", "max_keys=many", "max_keys=4294967295",
		"max_linger_s=-1", "max_linger_s=long", "max_linger_s=99999999999",
	};
	size_t i;

	kt_leave(&self->me);
	ASSERT_EQ(0, kt_unload());
	for (i = 0; i < ARRAY_LEN(parameters); i++) {
		EXPECT_GT(0, kt_load(parameters[i]))
			TH_LOG("%s", parameters[i]);
		kt_unload();
	}
	ASSERT_EQ(0, kt_load("max_linger_s=1"));
	ASSERT_EQ(0, kt_here(&self->me));
	kt_name(&self->policy, "keys");
	self->policy.linger_ns = SEC + 1;
	EXPECT_EQ(-EINVAL, create(self));
	self->policy.linger_ns = SEC;
	EXPECT_LT(0, create(self));
}

TEST_HARNESS_MAIN
