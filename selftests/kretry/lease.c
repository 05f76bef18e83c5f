// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Probes of a half-open breaker are leases: whatever becomes of their holder, they come back. */
#include "harness.h"
#include "shared.h"

#include <pthread.h>

#define KEY	7

FIXTURE(lease) {
	struct kt_party me, holder;
	struct kretry_policy policy;	/* "lease": opens after one failure for a second */
	int id, holders;
	struct kretry_op probe;
};

FIXTURE_SETUP(lease)
{
	ASSERT_EQ(0, kt_here(&self->me));
	ASSERT_EQ(0, kt_there(&self->holder, 0));
	kt_policy(&self->policy);
	kt_name(&self->policy, "lease");
	kt_breaker(&self->policy, 1, SEC, 1);
}

FIXTURE_TEARDOWN(lease)
{
	kt_leave(&self->holder);
	kt_leave(&self->me);
}

static struct kretry_stat state(FIXTURE_DATA(lease) *self)
{
	return kt_stat_key(&self->me, self->id, KEY);
}

/* Half-open, and the holder has the first probe. */
static int take(FIXTURE_DATA(lease) *self, unsigned int probes)
{
	self->policy.breaker.probes = probes;
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK(self->id > 0);
	self->holders = kt_party_named(&self->holder, "lease", 0);
	CHECK(self->holders > 0);
	CHECK_EQ(0, kt_fail(&self->me, self->id, KEY, 1));
	CHECK_EQ(KRETRY_STOP_OPEN, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	kt_sleep_open(&self->me, self->id, KEY);
	CHECK_EQ(KRETRY_GO, kt_begin(&self->holder, self->holders, KEY, &self->probe));
	CHECK(self->probe.flags & KRETRY_OP_PROBE);
	CHECK(self->probe.generation);
	return 0;
}

static int begin(FIXTURE_DATA(lease) *self, struct kretry_op *op)
{
	return kt_begin(&self->me, self->id, KEY, op);
}

/* The next caller is admitted as a probe, at once. */
static int is_free(FIXTURE_DATA(lease) *self)
{
	uint64_t start = kt_now(CLOCK_MONOTONIC);
	struct kretry_op op;

	CHECK_EQ(KRETRY_HALF_OPEN, state(self).state);
	CHECK_EQ(KRETRY_GO, begin(self, &op));
	CHECK_EQ(1, state(self).leases);
	CHECK(op.flags & KRETRY_OP_PROBE);
	CHECK(kt_now(CLOCK_MONOTONIC) < start + 100 * MSEC);
	CHECK_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	CHECK_EQ(KRETRY_CLOSED, state(self).state);
	return 0;
}

static int is_taken(FIXTURE_DATA(lease) *self)
{
	struct kretry_op op;

	CHECK_EQ(1, state(self).leases);
	CHECK_EQ(KRETRY_STOP_OPEN, begin(self, &op));
	CHECK(op.deadline_ns > kt_now(CLOCK_MONOTONIC));
	return 0;
}

/* -------- given back by its holder -------- */

TEST_F(lease, success_closes_and_the_lease_is_gone)
{
	ASSERT_EQ(0, take(self, 1));
	ASSERT_EQ(0, is_taken(self));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->holder, &self->probe, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
	EXPECT_EQ(0, state(self).leases);
	EXPECT_EQ(0, kt_stat(&self->me, self->id).probes_lost);
}

TEST_F(lease, cancelled_gives_it_back_and_counts_as_nothing)
{
	struct kretry_stat before, after;

	ASSERT_EQ(0, take(self, 1));
	before = kt_stat(&self->me, self->id);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->holder, &self->probe, KRETRY_EVENT_CANCELLED));
	after = kt_stat(&self->me, self->id);
	EXPECT_EQ(before.transitions, after.transitions);
	EXPECT_EQ(before.probes_lost, after.probes_lost);
	EXPECT_EQ(0, is_free(self));
}

TEST_F(lease, reported_twice_returned_once)
{
	struct kretry_op copy, op[3];

	ASSERT_EQ(0, take(self, 2));
	copy = self->probe;
	EXPECT_EQ(KRETRY_GO, begin(self, &op[0]));
	EXPECT_EQ(KRETRY_STOP_OPEN, begin(self, &op[1]));
	kt_report(&self->holder, &self->probe, KRETRY_EVENT_CANCELLED);
	kt_report(&self->holder, &copy, KRETRY_EVENT_CANCELLED);
	EXPECT_EQ(1, state(self).leases);
	EXPECT_EQ(KRETRY_GO, begin(self, &op[1]));
	EXPECT_EQ(KRETRY_STOP_OPEN, begin(self, &op[2]));
}

/* Another's generation, or a guessed one, frees and decides nothing. */
TEST_F(lease, report_by_somebody_else_frees_nothing)
{
	struct kretry_op forged;
	uint32_t i;

	ASSERT_EQ(0, take(self, 1));
	for (i = 0; i < 100; i++) {
		forged = self->probe;
		forged.policy = self->id;
		forged.generation += i - 50;
		kt_report(&self->me, &forged, i % 2 ? KRETRY_EVENT_CANCELLED : KRETRY_EVENT_OK);
	}
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
	EXPECT_EQ(0, is_taken(self));
}

TEST_F(lease, close_of_the_policy_refused_while_it_has_one)
{
	ASSERT_EQ(0, take(self, 1));
	EXPECT_EQ(-EBUSY, kt_party_forget(&self->holder, self->holders));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->holder, &self->probe, KRETRY_EVENT_CANCELLED));
	EXPECT_EQ(0, kt_party_forget(&self->holder, self->holders));
}

TEST_F(lease, shutdown_gives_it_back)
{
	ASSERT_EQ(0, take(self, 1));
	EXPECT_EQ(0, kt_call(&self->holder, KRETRY_IOC_SHUTDOWN, NULL, 0));
	EXPECT_EQ(0, is_free(self));
}

/* -------- the holder is gone -------- */

TEST_F(lease, holder_killed_back_at_once)
{
	ASSERT_EQ(0, take(self, 1));
	ASSERT_EQ(0, is_taken(self));
	kt_kill(&self->holder);
	EXPECT_EQ(1, kt_stat(&self->me, self->id).probes_lost);
	EXPECT_EQ(0, is_free(self));
	ASSERT_EQ(0, kt_there(&self->holder, 0));
}

TEST_F(lease, holder_closes_the_file_back_at_once)
{
	ASSERT_EQ(0, take(self, 1));
	EXPECT_EQ(0, kt_party_close(&self->holder));
	EXPECT_EQ(0, is_free(self));
}

/* The open file lives on in this process, the lease does not. */
static int take_on_the_shared_file(FIXTURE_DATA(lease) *self)
{
	kt_leave(&self->holder);
	CHECK_EQ(0, kt_there_with(&self->holder, self->me.fd));
	self->id = kt_party_create(&self->me, &self->policy);
	CHECK(self->id > 0);
	CHECK_EQ(0, kt_fail(&self->me, self->id, KEY, 1));
	kt_sleep_open(&self->me, self->id, KEY);
	CHECK_EQ(KRETRY_GO, kt_begin(&self->holder, self->id, KEY, &self->probe));
	return is_taken(self);
}

TEST_F(lease, holder_exits_while_another_holds_the_file_back)
{
	ASSERT_EQ(0, take_on_the_shared_file(self));
	kt_kill(&self->holder);
	EXPECT_EQ(0, is_free(self));
	ASSERT_EQ(0, kt_there(&self->holder, 0));
}

TEST_F(lease, holder_closes_while_another_holds_the_file_back)
{
	ASSERT_EQ(0, take_on_the_shared_file(self));
	EXPECT_EQ(0, kt_party_close(&self->holder));
	EXPECT_EQ(0, is_free(self));
}

TEST_F(lease, holder_execs_and_keeps_the_file_back)
{
	ASSERT_EQ(0, take_on_the_shared_file(self));
	ASSERT_EQ(0, kt_party_exec(&self->holder));
	EXPECT_EQ(0, is_free(self));
	EXPECT_EQ(KRETRY_GO, kt_event(&self->holder, self->id, KEY, KRETRY_EVENT_BEGIN));
}

/* Whoever merely inherited the file does not take the lease along. */
TEST_F(lease, child_of_the_holder_exits_or_closes_lease_stays)
{
	struct kretry_op op;
	struct kt_party child;

	self->id = kt_party_create(&self->me, &self->policy);
	kt_fail(&self->me, self->id, KEY, 1);
	kt_sleep_open(&self->me, self->id, KEY);
	ASSERT_EQ(KRETRY_GO, begin(self, &op));
	ASSERT_EQ(0, kt_there_with(&child, self->me.fd));
	EXPECT_EQ(0, kt_party_close(&child));
	EXPECT_EQ(0, is_taken(self));
	kt_kill(&child);
	EXPECT_EQ(0, is_taken(self));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
}

static void *take_in_a_thread(void *arg)
{
	FIXTURE_DATA(lease) *self = arg;

	return (void *)(long)begin(self, &self->probe);
}

TEST_F(lease, thread_of_the_holder_ends_lease_stays)
{
	pthread_t thread;
	void *verdict;

	self->id = kt_party_create(&self->me, &self->policy);
	kt_fail(&self->me, self->id, KEY, 1);
	kt_sleep_open(&self->me, self->id, KEY);
	ASSERT_EQ(0, pthread_create(&thread, NULL, take_in_a_thread, self));
	pthread_join(thread, &verdict);
	ASSERT_EQ(KRETRY_GO, (long)verdict);
	EXPECT_EQ(0, is_taken(self));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &self->probe, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
}

/* -------- the holder is silent -------- */

TEST_F(lease, silent_holder_back_at_the_timeout)
{
	struct kretry_op op;

	ASSERT_EQ(0, take(self, 2));
	EXPECT_EQ(KRETRY_GO, begin(self, &op));
	kt_sleep(9900 * MSEC);
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_CANCELLED));
	EXPECT_EQ(KRETRY_GO, begin(self, &op));
	EXPECT_EQ(KRETRY_STOP_OPEN, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	kt_sleep(200 * MSEC);
	EXPECT_EQ(KRETRY_GO, kt_event(&self->me, self->id, KEY, KRETRY_EVENT_BEGIN));
	EXPECT_EQ(1, kt_stat(&self->me, self->id).probes_lost);
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
}

/* Too late is too late, also when nobody has asked for the probe in between. */
TEST_F(lease, report_after_the_timeout_decides_nothing)
{
	ASSERT_EQ(0, take(self, 2));
	kt_sleep(10100 * MSEC);
	EXPECT_EQ(KRETRY_RETRY, kt_report(&self->holder, &self->probe, KRETRY_EVENT_TRANSIENT));
	EXPECT_EQ(KRETRY_HALF_OPEN, state(self).state);
	EXPECT_EQ(1, kt_stat(&self->me, self->id).opened);
	EXPECT_EQ(1, kt_stat(&self->me, self->id).probes_lost);
	EXPECT_EQ(0, is_free(self));
}

/* The failure is as old as the timeout, whenever somebody comes to see it. */
TEST_F(lease, silent_only_probe_host_idle_next_caller_admitted)
{
	struct kretry_op op;

	ASSERT_EQ(0, take(self, 1));
	kt_sleep(3600 * SEC);
	EXPECT_EQ(KRETRY_GO, begin(self, &op));
	EXPECT_EQ(KRETRY_OP_PROBE, op.flags & KRETRY_OP_PROBE);
	EXPECT_EQ(1, kt_stat(&self->me, self->id).probes_lost);
	EXPECT_EQ(2, kt_stat(&self->me, self->id).opened);
}

/* As many in a row as there are probes are one failure; nothing stays half-open for ever. */
TEST_F(lease, all_probes_silent_one_failure_then_admitted_again)
{
	struct kretry_op op;

	ASSERT_EQ(0, take(self, 2));
	EXPECT_EQ(KRETRY_GO, begin(self, &op));
	EXPECT_EQ(KRETRY_STOP_OPEN, begin(self, &op));
	kt_sleep(10100 * MSEC);
	EXPECT_EQ(KRETRY_STOP_OPEN, begin(self, &op));
	EXPECT_EQ(KRETRY_OPEN, state(self).state);
	EXPECT_EQ(2, kt_stat(&self->me, self->id).probes_lost);
	EXPECT_EQ(2, kt_stat(&self->me, self->id).opened);
	kt_sleep_open(&self->me, self->id, KEY);
	EXPECT_EQ(KRETRY_GO, begin(self, &op));
	EXPECT_EQ(KRETRY_DONE, kt_report(&self->me, &op, KRETRY_EVENT_OK));
	EXPECT_EQ(KRETRY_CLOSED, state(self).state);
}

int main(int argc, char **argv)
{
	kt_party_main(argc, argv);
	return test_harness_run(argc, argv);
}
