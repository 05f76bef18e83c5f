// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Retry budgets through the device: bounded, refilled, by key, over hours, and conserved. */
#include "harness.h"
#include "shared.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#define KEY	7
#define OTHER	8
#define HOUR	(3600 * SEC)
#define MILLI	(KRETRY_UTOK / 1000)

FIXTURE(budget) {
	struct kt_party me;
	struct kretry_policy policy;	/* 10 tokens, each retry costs one */
	int id;
};

FIXTURE_SETUP(budget)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_budget(&self->policy, 10);
}

FIXTURE_TEARDOWN(budget)
{
	kt_leave(&self->me);
}

static int create(FIXTURE_DATA(budget) *self)
{
	self->id = kt_party_create(&self->me, &self->policy);
	return self->id;
}

static uint64_t balance(FIXTURE_DATA(budget) *self, uint64_t key)
{
	return kt_stat_key(&self->me, self->id, key).balance_utok;
}

static int64_t many(FIXTURE_DATA(budget) *self, unsigned int event, unsigned int count,
		    unsigned int verdict)
{
	return kt_many(&self->me, self->id, KEY, event, count, verdict);
}

/* -------- how much it holds -------- */

TEST_F(budget, hundred_thousand_successes_balance_is_capacity)
{
	self->policy.budget.initial_utok = 0;
	self->policy.budget.deposit_first_success_utok = 100 * MILLI;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(0, balance(self, KEY));
	EXPECT_EQ(100000, many(self, KRETRY_EVENT_OK, 100000, KRETRY_DONE));
	EXPECT_EQ(10 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(10, kt_spend(&self->me, self->id, KEY));
	EXPECT_EQ(0, balance(self, KEY));
}

TEST_F(budget, hundred_thousand_failures_never_below_zero)
{
	self->policy.budget.drain_per_failure_utok = 3 * KRETRY_UTOK / 2;
	ASSERT_LT(0, create(self));
	/* 10 - 1.5 - 1 - ... : the fourth failure leaves 1, which no failure after it can pay. */
	EXPECT_EQ(4, many(self, KRETRY_EVENT_TRANSIENT, 100000, KRETRY_RETRY));
	EXPECT_EQ(0, balance(self, KEY));
	EXPECT_EQ(100000, many(self, KRETRY_EVENT_TRANSIENT, 100000, KRETRY_STOP_BUDGET));
	EXPECT_EQ(0, balance(self, KEY));
}

TEST_F(budget, drained_then_ten_successes_exactly_one_retry)
{
	self->policy.budget.deposit_first_success_utok = 100 * MILLI;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(10, kt_spend(&self->me, self->id, KEY));
	EXPECT_EQ(9, many(self, KRETRY_EVENT_OK, 9, KRETRY_DONE));
	EXPECT_EQ(0, kt_spend(&self->me, self->id, KEY));
	EXPECT_EQ(1, many(self, KRETRY_EVENT_OK, 1, KRETRY_DONE));
	EXPECT_EQ(1, kt_spend(&self->me, self->id, KEY));
	EXPECT_EQ(10, many(self, KRETRY_EVENT_OK, 10, KRETRY_DONE));
	EXPECT_EQ(1, kt_spend(&self->me, self->id, KEY));
}

TEST_F(budget, ten_deposits_of_six_tenths_buy_six_retries)
{
	struct kretry_op ops[10];
	int i, granted = 0;

	self->policy.budget.initial_utok = 0;
	self->policy.budget.deposit_request_utok = 600 * MILLI;
	ASSERT_LT(0, create(self));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &ops[i]));
	EXPECT_EQ(6 * KRETRY_UTOK, balance(self, KEY));
	for (i = 0; i < 10; i++)
		granted += kt_report(&self->me, &ops[i], KRETRY_EVENT_TRANSIENT) == KRETRY_RETRY;
	EXPECT_EQ(6, granted);
}

TEST_F(budget, minimum_per_second_allows_retries_after_silence)
{
	self->policy.budget.refill_utok_per_s = KRETRY_UTOK;
	self->policy.budget.reserve_cap_utok = 2 * KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(10, kt_spend(&self->me, self->id, KEY));
	kt_sleep(500 * MSEC);
	EXPECT_EQ(0, kt_spend(&self->me, self->id, KEY));
	kt_sleep(501 * MSEC);
	EXPECT_EQ(1, kt_spend(&self->me, self->id, KEY));
	kt_sleep(3 * SEC);
	EXPECT_EQ(2, kt_spend(&self->me, self->id, KEY));
}

TEST_F(budget, one_op_out_of_attempts_next_has_all_of_its_own)
{
	struct kretry_op op;
	int call, granted;

	self->policy.max_retries = 3;
	ASSERT_LT(0, create(self));
	for (call = 0; call < 3; call++) {
		op = kt_op(self->id, 0);
		op.key = KEY;
		granted = 0;
		while (kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT) == KRETRY_RETRY)
			granted++;
		EXPECT_EQ(3, granted);
		EXPECT_EQ(KRETRY_STOP_LIMIT, op.verdict);
	}
	/* A STOP costs nothing. */
	EXPECT_EQ(KRETRY_UTOK, balance(self, KEY));
}

/* -------- costs, thresholds, refunds -------- */

TEST_F(budget, cost_by_class)
{
	self->policy.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT;
	self->policy.budget.cost_transient_utok = KRETRY_UTOK;
	self->policy.budget.cost_throttled_utok = 2 * KRETRY_UTOK;
	self->policy.budget.cost_unknown_utok = 4 * KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(1, many(self, KRETRY_EVENT_UNKNOWN, 1, KRETRY_RETRY));
	EXPECT_EQ(6 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(1, many(self, KRETRY_EVENT_THROTTLED, 1, KRETRY_RETRY));
	EXPECT_EQ(4 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(1, many(self, KRETRY_EVENT_TRANSIENT, 1, KRETRY_RETRY));
	EXPECT_EQ(3 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(1, many(self, KRETRY_EVENT_UNKNOWN, 1, KRETRY_STOP_BUDGET));
	EXPECT_EQ(1, many(self, KRETRY_EVENT_PERMANENT, 1, KRETRY_STOP_PERMANENT));
	EXPECT_EQ(3 * KRETRY_UTOK, balance(self, KEY));
}

TEST_F(budget, drain_and_threshold_half_the_bucket_held_back)
{
	self->policy.budget.drain_per_failure_utok = KRETRY_UTOK;
	self->policy.budget.cost_transient_utok = 0;
	self->policy.budget.admit_above_utok = 5 * KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(4, kt_spend(&self->me, self->id, KEY));
	EXPECT_EQ(5 * KRETRY_UTOK, balance(self, KEY));
}

TEST_F(budget, success_of_a_retry_refunds_the_last_cost)
{
	struct kretry_op op;

	self->policy.budget.flags = KRETRY_BUDGET_REFUND_LAST;
	self->policy.budget.cost_throttled_utok = 3 * KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	op = kt_op(self->id, 0);
	op.key = KEY;
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->me, &op, KRETRY_EVENT_THROTTLED));
	EXPECT_EQ(6 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(9 * KRETRY_UTOK, balance(self, KEY));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(9 * KRETRY_UTOK, balance(self, KEY));
}

/* -------- keys -------- */

TEST_F(budget, one_key_failing_thousandfold_other_key_gets_every_retry)
{
	int second;

	self->policy.budget.capacity_utok = 10 * KRETRY_UTOK;
	self->policy.budget.initial_utok = KRETRY_UTOK;
	self->policy.budget.reserve_cap_utok = KRETRY_UTOK;
	self->policy.budget.refill_utok_per_s = KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	for (second = 0; second < 20; second++) {
		EXPECT_EQ(1, many(self, KRETRY_EVENT_TRANSIENT, 50, KRETRY_RETRY));
		EXPECT_EQ(KRETRY_RETRY,
			  kt_event(&self->me, self->id, OTHER, KRETRY_EVENT_TRANSIENT));
		kt_sleep(SEC);
	}
}

TEST_F(budget, two_processes_on_one_key_get_one_budget)
{
	struct kt_party other;
	int id, granted = 0, i;

	kt_name(&self->policy, "budget");
	ASSERT_LT(0, create(self));
	ASSERT_EQ(0, kt_there(&other, 0));
	id = kt_party_named(&other, "budget", 0);
	ASSERT_LT(0, id);
	for (i = 0; i < 100; i++) {
		granted += kt_event(&self->me, self->id, KEY, KRETRY_EVENT_TRANSIENT) ==
			   KRETRY_RETRY;
		granted += kt_event(&other, id, KEY, KRETRY_EVENT_TRANSIENT) == KRETRY_RETRY;
	}
	EXPECT_EQ(10, granted);
	EXPECT_EQ(10, kt_spend(&other, id, OTHER));
	kt_leave(&other);
}

/* A real server that is not there: the loop ends by the budget and by nothing else. */
TEST_F(budget, refused_connections_eleven_attempts_then_exhausted)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct kretry_op op;
	int attempts = 0, server;

	self->policy.max_retries = 1000;
	ASSERT_LT(0, create(self));
	op = kt_op(self->id, 0);
	do {
		ASSERT_EQ(KRETRY_GO, kt_report(&self->me, &op, KRETRY_EVENT_BEGIN));
		kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
		server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		EXPECT_EQ(-1, connect(server, (struct sockaddr *)&address, sizeof(address)));
		EXPECT_EQ(ECONNREFUSED, errno);
		close(server);
		attempts++;
		kt_report(&self->me, &op, KRETRY_EVENT_TRANSIENT);
		kt_sleep_until(CLOCK_MONOTONIC, op.deadline_ns);
	} while (op.verdict == KRETRY_RETRY);
	EXPECT_EQ(KRETRY_STOP_BUDGET, op.verdict);
	EXPECT_EQ(11, attempts);
	EXPECT_EQ(10, op.attempt);
}

/* -------- time -------- */

TEST_F(budget, deposits_lapse_with_their_window)
{
	self->policy.budget.initial_utok = 0;
	self->policy.budget.window_ns = 10 * SEC;
	self->policy.budget.deposit_request_utok = 200 * MILLI;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(20, many(self, KRETRY_EVENT_BEGIN, 20, KRETRY_GO));
	kt_sleep(5 * SEC);
	EXPECT_EQ(10, many(self, KRETRY_EVENT_BEGIN, 10, KRETRY_GO));
	EXPECT_EQ(6 * KRETRY_UTOK, balance(self, KEY));
	/* The first ones lapse 9 to 10 s after they came, the later ones 5 s after them. */
	kt_sleep(3900 * MSEC);
	EXPECT_EQ(6 * KRETRY_UTOK, balance(self, KEY));
	kt_sleep(1200 * MSEC);
	EXPECT_EQ(2 * KRETRY_UTOK, balance(self, KEY));
	kt_sleep(5 * SEC);
	EXPECT_EQ(0, balance(self, KEY));
	EXPECT_EQ(0, kt_spend(&self->me, self->id, KEY));
}

/* Slow enough that each look is worth less than a micro-token: looking must not lose it. */
TEST_F(budget, refill_over_hours_exact_however_often_looked_at)
{
	uint64_t start, before, now, rate = 277;
	int i;

	self->policy.budget.initial_utok = 0;
	self->policy.budget.refill_utok_per_s = rate;
	self->policy.budget.reserve_cap_utok = 10 * KRETRY_UTOK;
	ASSERT_LT(0, create(self));
	before = kt_now(CLOCK_MONOTONIC);
	EXPECT_EQ(KRETRY_STOP_BUDGET, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_TRANSIENT));
	start = kt_now(CLOCK_MONOTONIC);
	for (i = 0; i < 10000; i++)
		kt_event(&self->me, self->id, KEY, KRETRY_EVENT_CANCELLED);
	for (i = 0; i < 3; i++) {
		kt_sleep(HOUR);
		now = balance(self, KEY);
		EXPECT_LE(now, (kt_now(CLOCK_MONOTONIC) - before) * rate / SEC);
		EXPECT_GE(now + 2, (kt_now(CLOCK_MONOTONIC) - start) * rate / SEC);
	}
	EXPECT_EQ(2, kt_spend(&self->me, self->id, KEY));
}

TEST_F(budget, idle_for_hours_deposits_gone_reserve_at_its_cap)
{
	self->policy.budget.initial_utok = 0;
	self->policy.budget.refill_utok_per_s = KRETRY_UTOK;
	self->policy.budget.reserve_cap_utok = 3 * KRETRY_UTOK;
	self->policy.budget.deposit_request_utok = KRETRY_UTOK;
	self->policy.budget.window_ns = 60 * SEC;
	ASSERT_LT(0, create(self));
	EXPECT_EQ(5, many(self, KRETRY_EVENT_BEGIN, 5, KRETRY_GO));
	EXPECT_LE(5 * KRETRY_UTOK, balance(self, KEY));
	kt_sleep(2 * HOUR);
	EXPECT_EQ(3 * KRETRY_UTOK, balance(self, KEY));
}

/* -------- conservation -------- */

struct worker {
	FIXTURE_DATA(budget) *self;
	unsigned int seed;
	uint64_t granted, deposited;
};

static void *mix(void *arg)
{
	struct worker *w = arg;
	struct kretry_op op = kt_op(w->self->id, 0);
	unsigned int i, event;
	bool first;

	op.key = KEY;
	for (i = 0; i < 20000; i++) {
		event = rand_r(&w->seed) % 4 ? KRETRY_EVENT_TRANSIENT : KRETRY_EVENT_OK;
		first = !op.attempt;
		w->granted += kt_report(&w->self->me, &op, event) == KRETRY_RETRY;
		w->deposited += first && event == KRETRY_EVENT_OK;
		if (op.verdict != KRETRY_RETRY) {
			op = kt_op(w->self->id, 0);
			op.key = KEY;
		}
	}
	return NULL;
}

/* Five threads that spend and deposit: what went out is what came in less what is left. */
TEST_F(budget, threads_that_spend_and_deposit_every_token_accounted_for)
{
	struct worker workers[5] = { 0 };
	uint64_t granted = 0, deposited = 0, left;
	struct kretry_stat stat;
	pthread_t threads[5];
	int i;

	self->policy.budget.capacity_utok = 1000000 * KRETRY_UTOK;
	self->policy.budget.initial_utok = 5000 * KRETRY_UTOK;
	self->policy.budget.deposit_first_success_utok = KRETRY_UTOK / 2;
	ASSERT_LT(0, create(self));
	for (i = 0; i < 5; i++) {
		workers[i] = (struct worker){ .self = self, .seed = i + 1 };
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, mix, &workers[i]));
	}
	for (i = 0; i < 5; i++) {
		pthread_join(threads[i], NULL);
		granted += workers[i].granted;
		deposited += workers[i].deposited;
	}
	left = balance(self, KEY);
	EXPECT_LT(5000, granted);
	EXPECT_EQ(5000 * KRETRY_UTOK + deposited * KRETRY_UTOK / 2, granted * KRETRY_UTOK + left);
	stat = kt_stat(&self->me, self->id);
	EXPECT_EQ(granted * KRETRY_UTOK, stat.charged_utok);
	EXPECT_EQ(granted, stat.retry);
}

TEST_HARNESS_MAIN
