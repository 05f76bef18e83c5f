// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* An open breaker and its way back: open time, probes, late results, forced modes, the ramp. */
#include "world.h"

#define FAIL	KRETRY_EVENT_TRANSIENT
#define OK	KRETRY_EVENT_OK
#define BEGIN	KRETRY_EVENT_BEGIN

/* Opens at the first failure for 10 s. */
static struct kretry_policy brittle(u32 probes)
{
	struct kretry_policy p = plain_shared();

	p.breaker = (struct kretry_breaker){
		.consecutive = 1, .probes = probes, .open_ns = 10 * SEC, .open_cap_ns = 40 * SEC,
		.probe_timeout_ns = SEC,
	};
	return p;
}

static struct world half_open(struct kretry_policy p)
{
	struct world w = world_of(p);

	calls(&w, FAIL, 1);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	pass(&w, w.s.changed_ns - w.now);
	assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
	return w;
}

static struct kretry_op probe_of(struct world *w)
{
	struct kretry_op op = { .policy = 1, .flags = KRETRY_OP_IDEMPOTENT };

	assert_int_equal(step(w, &op, BEGIN), KRETRY_GO);
	assert_true(op.flags & KRETRY_OP_PROBE && w->leased);
	return op;
}

static void lose_probe(struct world *w)
{
	kretry_breaker_lost(&w->p.breaker, &w->s, w->now, 0);
}

static void open_refuses_until_the_very_end_of_its_time(void **state)
{
	struct world w = world_of(brittle(1));
	struct kretry_op op = { .policy = 1 };

	(void)state;
	calls(&w, FAIL, 1);
	pass(&w, 10 * SEC - 1);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_STOP_OPEN);
	assert_int_equal(op.deadline_ns, w.now + 1 + SEC);
	pass(&w, 1);
	assert_int_equal(step(&w, &op, BEGIN), KRETRY_GO);
	assert_true(w.leased);
}

static void refused_calls_do_not_extend_the_open_time(void **state)
{
	struct world w = world_of(brittle(1));
	u64 until;

	(void)state;
	calls(&w, FAIL, 1);
	until = w.s.changed_ns;
	for (; w.now < until - SEC; pass(&w, MS))
		assert_int_equal(call_taking(&w, FAIL, 0), KRETRY_STOP_OPEN);
	assert_int_equal(w.s.changed_ns, until);
	assert_int_equal(w.s.growth, 1);
}

static void open_time_grows_up_to_its_cap_and_starts_anew_after_closing(void **state)
{
	static const u64 seconds[] = { 10, 20, 40, 40, 40 };
	struct kretry_policy p = brittle(1);
	struct kretry_op op;
	struct world w;
	size_t i;

	(void)state;
	p.breaker.open_growth_ppm = 2 * KRETRY_PPM;
	w = world_of(p);
	for (i = 0; i < ARRAY_SIZE(seconds); i++) {
		calls(&w, FAIL, 1);
		assert_int_equal(w.s.state, KRETRY_OPEN);
		assert_int_equal(w.s.changed_ns - w.now, seconds[i] * SEC);
		pass(&w, seconds[i] * SEC);
	}
	op = probe_of(&w);
	step(&w, &op, OK);
	assert_int_equal(w.s.state, KRETRY_CLOSED);
	calls(&w, FAIL, 1);
	assert_int_equal(w.s.changed_ns - w.now, 10 * SEC);
}

static void open_time_stays_at_its_cap_for_thousands_of_openings(void **state)
{
	struct kretry_policy p = brittle(1);
	struct world w;
	u32 i;

	(void)state;
	p.breaker.open_growth_ppm = U32_MAX;
	p.breaker.open_cap_ns = NS_MAX / 4096;
	w = half_open(p);
	for (i = 0; i < 2000; i++) {
		calls(&w, FAIL, 1);
		assert_in_range(w.s.changed_ns - w.now, SEC, p.breaker.open_cap_ns);
		if (i > 10)
			assert_int_equal(w.s.changed_ns - w.now, p.breaker.open_cap_ns);
		pass(&w, w.s.changed_ns - w.now);
	}
}

static u64 open_time(const struct kretry_policy *p, u64 rnd)
{
	struct world w = world_of(*p);
	struct kretry_op op = { .policy = 1 };

	step_with(&w, &op, FAIL, rnd);
	return w.s.changed_ns - w.now;
}

/* Uniform in [lo, hi] by ten bins of 10000 each: 99.99 % of right programs pass. */
static void assert_uniform_open_time(const struct kretry_policy *p, u64 lo, u64 hi)
{
	u32 bins[10] = { 0 }, i;
	double chi = 0;

	assert_int_equal(open_time(p, 0), lo);
	assert_int_equal(open_time(p, U64_MAX), hi);
	for (i = 0; i < 100000; i++)
		bins[(open_time(p, fresh_u64()) - lo) * 10 / (hi - lo + 1)]++;
	for (i = 0; i < 10; i++)
		chi += (bins[i] - 10000.0) * (bins[i] - 10000.0) / 10000.0;
	assert_true(chi < 33.7);
}

static void open_jitter_uniform_and_not_above_the_cap(void **state)
{
	struct kretry_policy p = brittle(1);

	(void)state;
	p.breaker.open_jitter_ppm = KRETRY_PPM / 2;
	assert_uniform_open_time(&p, 10 * SEC, 15 * SEC);
	p.breaker.open_cap_ns = 12 * SEC;
	assert_uniform_open_time(&p, 7 * SEC, 12 * SEC);
	p.breaker.open_cap_ns = 10 * SEC;
	assert_uniform_open_time(&p, 5 * SEC, 10 * SEC);
	p.breaker.open_ns = NS_MAX;
	p.breaker.open_cap_ns = NS_MAX;
	assert_int_equal(open_time(&p, U64_MAX), NS_MAX - NOW);
}

static void probes_no_more_than_there_are(void **state)
{
	u32 probes, i;

	(void)state;
	for (probes = 1; probes <= 255; probes += 127) {
		struct world w = half_open(brittle(probes));
		struct kretry_op op;

		for (i = 0; i < probes; i++)
			op = probe_of(&w);
		for (i = 0; i < 1000; i++) {
			struct kretry_op other = { .policy = 1 };

			assert_int_equal(step(&w, &other, BEGIN), KRETRY_STOP_OPEN);
			assert_int_equal(other.deadline_ns, w.now + SEC);
			assert_false(w.leased);
		}
		assert_int_equal(w.s.probes_out, probes);
		step(&w, &op, KRETRY_EVENT_CANCELLED);
		assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
		probe_of(&w);
		assert_int_equal(w.s.probes_out, probes);
	}
}

static void probe_that_fails_reopens_at_once(void **state)
{
	struct world w = half_open(brittle(3));
	struct kretry_op ops[3] = { probe_of(&w), probe_of(&w), probe_of(&w) };

	(void)state;
	step(&w, &ops[1], FAIL);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	assert_int_equal(w.s.changed_ns, w.now + 10 * SEC);
	step(&w, &ops[0], OK);
	step(&w, &ops[2], FAIL);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	assert_int_equal(w.s.growth, 2);
}

static void successes_to_close_close_and_forget(void **state)
{
	struct kretry_policy p = brittle(1);
	struct kretry_op op;
	struct world w;
	u32 i;

	(void)state;
	p.breaker.successes_to_close = 3;
	w = half_open(p);
	for (i = 0; i < 3; i++) {
		assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
		op = probe_of(&w);
		step(&w, &op, i ? OK : KRETRY_EVENT_PERMANENT);
	}
	assert_int_equal(w.s.state, KRETRY_CLOSED);
	assert_int_equal(w.s.streak, 0);
	assert_true(kretry_shared_is_new(&w.p, &w.s));
}

/* Of four probes the share of failures decides, when all four have reported. */
static void half_open_share_judged_after_all_probes(void **state)
{
	u32 failures, i;

	(void)state;
	for (failures = 0; failures <= 4; failures++) {
		struct kretry_policy p = brittle(4);
		struct kretry_op ops[4], more = { .policy = 1 };
		struct world w;

		p.breaker.half_open_ppm = KRETRY_PPM / 2;
		w = half_open(p);
		for (i = 0; i < 4; i++)
			ops[i] = probe_of(&w);
		for (i = 0; i < 4; i++) {
			assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
			assert_int_equal(step(&w, &more, BEGIN), KRETRY_STOP_OPEN);
			step(&w, &ops[i], i < failures ? FAIL : OK);
		}
		assert_int_equal(w.s.state, failures < 2 ? KRETRY_CLOSED : KRETRY_OPEN);
	}
}

static void throttled_probe_follows_its_own_rule(void **state)
{
	static const u8 states[] = { KRETRY_HALF_OPEN, KRETRY_CLOSED, KRETRY_OPEN };
	u8 as;

	(void)state;
	for (as = 0; as < 3; as++) {
		struct kretry_policy p = brittle(1);
		struct kretry_op op;
		struct world w;

		p.breaker.throttled = (as + 1) % 3;
		p.breaker.throttled_half_open = as;
		w = half_open(p);
		op = probe_of(&w);
		step(&w, &op, KRETRY_EVENT_THROTTLED);
		assert_int_equal(w.s.state, states[as]);
		assert_int_equal(w.s.probes_out, 0);
	}
}

static void slow_probe_has_failed(void **state)
{
	struct kretry_policy p = brittle(1);
	struct kretry_op op;
	struct world w;

	(void)state;
	p.breaker.slow_ppm = KRETRY_PPM;
	p.breaker.slow_ns = SEC;
	p.breaker.window_calls = 10;
	w = half_open(p);
	op = probe_of(&w);
	pass(&w, SEC + 1);
	step(&w, &op, OK);
	assert_int_equal(w.s.state, KRETRY_OPEN);
}

static void probes_lost_in_a_row_count_as_one_failure(void **state)
{
	struct world w = half_open(brittle(3));
	struct kretry_op op;
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++)
		probe_of(&w);
	lose_probe(&w);
	lose_probe(&w);
	assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
	op = probe_of(&w);
	step(&w, &op, KRETRY_EVENT_CANCELLED);
	lose_probe(&w);
	probe_of(&w);
	lose_probe(&w);
	assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
	probe_of(&w);
	lose_probe(&w);
	assert_int_equal(w.s.state, KRETRY_OPEN);

	w = half_open(brittle(1));
	probe_of(&w);
	lose_probe(&w);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	assert_int_equal(w.s.growth, 2);
}

/* Begun while closed; the breaker opens, half-opens and closes, and in each the results come. */
static void late_results_count_nowhere_and_do_not_move_the_open_timer(void **state)
{
	u8 event;

	(void)state;
	for (event = OK; event <= KRETRY_EVENT_PERMANENT; event++) {
		struct kretry_op early[4] = { { .policy = 1 } }, probe;
		struct world w = world_of(brittle(1));
		u64 until;
		u32 i;

		for (i = 0; i < 4; i++)
			step(&w, &early[i], BEGIN);
		calls(&w, FAIL, 1);
		until = w.s.changed_ns;
		pass(&w, SEC);
		step(&w, &early[0], event);
		assert_int_equal(w.s.state, KRETRY_OPEN);
		assert_int_equal(w.s.changed_ns, until);
		pass(&w, 9 * SEC);
		step(&w, &early[1], event);
		assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
		assert_int_equal(w.s.probes_ok + w.s.probes_failed, 0);
		probe = probe_of(&w);
		step(&w, &early[2], event);
		assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
		assert_int_equal(w.s.probes_out, 1);
		assert_int_equal(w.s.growth, 1);
		step(&w, &probe, OK);
		step(&w, &early[3], event);
		assert_int_equal(w.s.state, KRETRY_CLOSED);
		assert_int_equal(w.s.streak, 0);
	}
}

static void results_without_begin_count_only_where_they_needed_none(void **state)
{
	struct kretry_op op = { .policy = 1 };
	struct world w = half_open(brittle(1));

	(void)state;
	assert_int_equal(step(&w, &op, OK), KRETRY_DONE);
	assert_int_equal(op.generation, 0);
	assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
	step(&w, &op, FAIL);
	assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_refuses_until_the_very_end_of_its_time),
		cmocka_unit_test(refused_calls_do_not_extend_the_open_time),
		cmocka_unit_test(open_time_grows_up_to_its_cap_and_starts_anew_after_closing),
		cmocka_unit_test(open_time_stays_at_its_cap_for_thousands_of_openings),
		cmocka_unit_test(open_jitter_uniform_and_not_above_the_cap),
		cmocka_unit_test(probes_no_more_than_there_are),
		cmocka_unit_test(probe_that_fails_reopens_at_once),
		cmocka_unit_test(successes_to_close_close_and_forget),
		cmocka_unit_test(half_open_share_judged_after_all_probes),
		cmocka_unit_test(throttled_probe_follows_its_own_rule),
		cmocka_unit_test(slow_probe_has_failed),
		cmocka_unit_test(probes_lost_in_a_row_count_as_one_failure),
		cmocka_unit_test(late_results_count_nowhere_and_do_not_move_the_open_timer),
		cmocka_unit_test(results_without_begin_count_only_where_they_needed_none),
	};

	return run_group(tests);
}
