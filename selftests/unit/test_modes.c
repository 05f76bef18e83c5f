// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Operators' modes, the ramp after closing, and which keys can be forgotten. */
#include "world.h"

#define FAIL	KRETRY_EVENT_TRANSIENT
#define OK	KRETRY_EVENT_OK
#define BEGIN	KRETRY_EVENT_BEGIN

static struct kretry_policy brittle(void)
{
	struct kretry_policy p = plain_shared();

	p.breaker = (struct kretry_breaker){
		.consecutive = 1, .probes = 1, .open_ns = 10 * SEC, .open_cap_ns = 40 * SEC,
		.probe_timeout_ns = SEC,
	};
	return p;
}

static void forced_open_refuses_and_counts_nothing(void **state)
{
	struct world w = world_of(brittle());
	struct kretry_op op = { .policy = 1 };

	(void)state;
	step(&w, &op, BEGIN);
	w.s.mode = KRETRY_MODE_FORCED_OPEN;
	assert_int_equal(step(&w, &op, FAIL), KRETRY_STOP_OPEN);
	assert_int_equal(op.deadline_ns, w.now + SEC);
	assert_int_equal(w.s.state, KRETRY_CLOSED);
	assert_int_equal(call_taking(&w, OK, 0), KRETRY_STOP_OPEN);
	pass(&w, 3600 * SEC);
	assert_int_equal(call_taking(&w, OK, 0), KRETRY_STOP_OPEN);
	w.s.mode = KRETRY_MODE_AUTOMATIC;
	assert_int_equal(call_taking(&w, OK, 0), KRETRY_DONE);
}

static void forced_closed_admits_and_counts_nothing(void **state)
{
	struct world w = world_of(brittle());

	(void)state;
	calls(&w, FAIL, 1);
	w.s.mode = KRETRY_MODE_FORCED_CLOSED;
	assert_int_equal(call_taking(&w, FAIL, 0), KRETRY_RETRY);
	pass(&w, 10 * SEC);
	assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
	assert_int_equal(call_taking(&w, FAIL, 0), KRETRY_RETRY);
	assert_int_equal(call_taking(&w, OK, 0), KRETRY_DONE);
	assert_false(w.leased);
	assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
	assert_int_equal(w.s.probes_ok + w.s.probes_failed, 0);
}

/* By the policy or by an operator: every state is gone through, and nobody notices. */
static void metrics_only_changes_state_and_refuses_nobody(void **state)
{
	u32 by, begins;

	(void)state;
	for (by = 0; by < 2; by++) {
		for (begins = 0; begins < 2; begins++) {
			struct kretry_policy p = brittle();
			struct kretry_op op = { .policy = 1 };
			struct world w;

			p.breaker.flags = by ? KRETRY_BREAKER_METRICS_ONLY : 0;
			w = world_of(p);
			w.s.mode = by ? KRETRY_MODE_AUTOMATIC : KRETRY_MODE_METRICS_ONLY;
			assert_int_equal(call_taking(&w, FAIL, 0), KRETRY_RETRY);
			assert_int_equal(w.s.state, KRETRY_OPEN);
			assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
			assert_int_equal(step(&w, &op, OK), KRETRY_DONE);
			pass(&w, 10 * SEC);
			if (begins)
				assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
			assert_false(w.leased);
			assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
			assert_int_equal(step(&w, &op, OK), KRETRY_DONE);
			assert_int_equal(w.s.state, KRETRY_CLOSED);
		}
	}
}

/* Closes a breaker whose admission grows over 100 s. */
static struct world ramping(void)
{
	struct kretry_policy p = brittle();
	struct world w;

	p.breaker.ramp_ns = 100 * SEC;
	p.backoff.jitter = KRETRY_JITTER_FULL;
	w = world_of(p);
	calls(&w, FAIL, 1);
	pass(&w, 10 * SEC);
	calls(&w, OK, 1);
	assert_int_equal(w.s.state, KRETRY_CLOSED);
	return w;
}

/* Like the module's draws: 32 random bits, twice. */
static u64 short_draw(void)
{
	return (fresh_u64() >> 32) * 0x100000001ULL;
}

/* Of 10000, @least to @most are admitted; the delays of the others average half a second. */
static void assert_admitted(struct world *w, u32 least, u32 most)
{
	u32 i, admitted = 0;
	u64 delays = 0;

	for (i = 0; i < 10000; i++) {
		struct kretry_op op = { .policy = 1 };
		u64 rnd = i & 1 ? short_draw() : fresh_u64();

		if (step_with(w, &op, BEGIN, rnd) == KRETRY_GO)
			admitted++;
		else
			delays += op.deadline_ns - w->now;
	}
	assert_in_range(admitted, least, most);
	if (admitted < 9500)
		assert_in_range(delays / (10000 - admitted), 440 * MS, 560 * MS);
}

static void ramp_admits_more_and_more_and_spreads_the_rest(void **state)
{
	struct world w = ramping();

	(void)state;
	assert_admitted(&w, 0, 0);
	pass(&w, 25 * SEC);
	assert_admitted(&w, 2250, 2750);
	pass(&w, 50 * SEC);
	assert_admitted(&w, 7250, 7750);
	pass(&w, 15 * SEC);
	assert_admitted(&w, 8800, 9200);
	pass(&w, 10 * SEC);
	assert_admitted(&w, 10000, 10000);
}

/* Also on a host that has been up for less than the ramp. */
static void ramp_not_for_a_key_that_never_opened(void **state)
{
	struct kretry_policy p = brittle();
	struct kretry_op op = { .policy = 1 };
	struct world w;
	u32 i;

	(void)state;
	p.breaker.ramp_ns = NS_MAX;
	w = world_of(p);
	w.now = 1;
	kretry_shared_start(&w.p, &w.s, w.now);
	assert_true(kretry_shared_is_new(&w.p, &w.s));
	for (i = 0; i < 100; i++)
		assert_int_equal(step_with(&w, &op, BEGIN, fresh_u64()), KRETRY_GO);
}

static void key_new_again_only_when_nothing_tells_it_from_one(void **state)
{
	struct kretry_policy p = brittle();
	struct kretry_op op = {
		.policy = 1, .event = KRETRY_EVENT_THROTTLED, .flags = KRETRY_OP_HINT,
		.hint_ns = SEC,
	};
	struct kretry_call call = { .now = NOW };
	struct world w = ramping();

	(void)state;
	assert_false(kretry_shared_is_new(&w.p, &w.s));
	pass(&w, 100 * SEC);
	assert_true(kretry_shared_is_new(&w.p, &w.s));

	p.breaker.consecutive = 9;
	p.budget.capacity_utok = KRETRY_UTOK;
	p.budget.initial_utok = KRETRY_UTOK;
	p.budget.reserve_cap_utok = KRETRY_UTOK;
	p.budget.refill_utok_per_s = KRETRY_UTOK;
	p.budget.cost_transient_utok = KRETRY_UTOK;
	p.pacing.pace_ns = 3 * SEC;
	p.flags = KRETRY_POLICY_HINT_SHARED | KRETRY_POLICY_PACE_ALL;
	w = world_of(p);
	assert_true(kretry_shared_is_new(&w.p, &w.s));
	calls(&w, OK, 1);
	assert_false(kretry_shared_is_new(&w.p, &w.s));
	pass(&w, 3 * SEC);
	assert_true(kretry_shared_is_new(&w.p, &w.s));
	calls(&w, FAIL, 1);
	pass(&w, 3 * SEC);
	assert_false(kretry_shared_is_new(&w.p, &w.s));
	calls(&w, OK, 1);
	pass(&w, 3 * SEC);
	assert_true(kretry_shared_is_new(&w.p, &w.s));
	call.now = w.now;
	kretry_apply(&w.p, &w.s, &op, &call);
	assert_false(kretry_shared_is_new(&w.p, &w.s));
	pass(&w, SEC);
	assert_true(kretry_shared_is_new(&w.p, &w.s));
	w.s.reserve_utok--;
	assert_false(kretry_shared_is_new(&w.p, &w.s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forced_open_refuses_and_counts_nothing),
		cmocka_unit_test(forced_closed_admits_and_counts_nothing),
		cmocka_unit_test(metrics_only_changes_state_and_refuses_nobody),
		cmocka_unit_test(ramp_admits_more_and_more_and_spreads_the_rest),
		cmocka_unit_test(ramp_not_for_a_key_that_never_opened),
		cmocka_unit_test(key_new_again_only_when_nothing_tells_it_from_one),
	};

	return run_group(tests);
}
