// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* When a closed breaker opens: streak, ratio, slow calls, windows, who reported, which results. */
#include "world.h"

#define FAIL	KRETRY_EVENT_TRANSIENT
#define OK	KRETRY_EVENT_OK

static struct kretry_policy streak_of(u32 consecutive)
{
	struct kretry_policy p = plain_shared();

	p.breaker = (struct kretry_breaker){
		.consecutive = consecutive, .probes = 1, .open_ns = SEC, .open_cap_ns = SEC,
		.probe_timeout_ns = SEC,
	};
	return p;
}

/* Half of at least @min_calls, in a window of 10 s or of @calls results. */
static struct kretry_policy ratio_of(u32 min_calls, u32 calls)
{
	struct kretry_policy p = streak_of(0);

	p.breaker.ratio_ppm = KRETRY_PPM / 2;
	p.breaker.min_calls = min_calls;
	p.breaker.window_calls = calls;
	p.breaker.window_ns = calls ? 0 : 10 * SEC;
	return p;
}

static bool is_open(const struct world *w)
{
	return w->s.state == KRETRY_OPEN;
}

static void calls_of(struct world *w, u16 who, u8 event, u32 count)
{
	w->who = who;
	calls(w, event, count);
}

static void streak_of_failures_opens_and_a_success_ends_it(void **state)
{
	struct world w = world_of(streak_of(3));

	(void)state;
	calls(&w, FAIL, 2);
	calls(&w, OK, 1);
	assert_int_equal(w.s.streak, 0);
	calls(&w, FAIL, 2);
	assert_false(is_open(&w));
	calls(&w, FAIL, 1);
	assert_true(is_open(&w));
	assert_int_equal(w.s.changed_ns, w.now + SEC);
	assert_int_equal(w.s.streak, 0);
}

static void streak_at_its_largest_opens_once_and_does_not_wrap(void **state)
{
	struct world w = world_of(streak_of(65535));

	(void)state;
	calls(&w, FAIL, 65534);
	assert_false(is_open(&w));
	calls(&w, FAIL, 1);
	assert_true(is_open(&w));

	w = world_of(streak_of(0));
	calls(&w, FAIL, 70000);
	assert_false(is_open(&w));
	assert_int_equal(w.s.streak, 65535);
}

/* What each event counts as, while closed; the handling of THROTTLED is the policy's. */
static void event_of_each_kind_counts_as_documented(void **state)
{
	static const struct {
		u8 event, throttled;
		bool failure, counted;
	} cases[] = {
		{ KRETRY_EVENT_OK, 0, false, true },
		{ KRETRY_EVENT_PERMANENT, 0, false, true },
		{ KRETRY_EVENT_TRANSIENT, 0, true, true },
		{ KRETRY_EVENT_UNKNOWN, 0, true, true },
		{ KRETRY_EVENT_CANCELLED, 0, false, false },
		{ KRETRY_EVENT_THROTTLED, KRETRY_THROTTLED_IGNORED, false, false },
		{ KRETRY_EVENT_THROTTLED, KRETRY_THROTTLED_SUCCESS, false, true },
		{ KRETRY_EVENT_THROTTLED, KRETRY_THROTTLED_FAILURE, true, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kretry_policy p = ratio_of(100, 0);
		struct world w;

		p.breaker.throttled = cases[i].throttled;
		p.breaker.throttled_half_open = 2 - cases[i].throttled;
		w = world_of(p);
		calls(&w, FAIL, 1);
		calls(&w, cases[i].event, 1);
		assert_int_equal(w.s.calls[w.s.slice], 1 + cases[i].counted);
		assert_int_equal(w.s.failures[w.s.slice], 1 + cases[i].failure);
		assert_int_equal(w.s.streak, cases[i].failure ? 2 : !cases[i].counted);
	}
}

static void ratio_needs_its_calls_and_is_met_at_its_edge(void **state)
{
	struct world w = world_of(ratio_of(10, 0));

	(void)state;
	calls(&w, OK, 5);
	calls(&w, FAIL, 4);
	assert_false(is_open(&w));
	calls(&w, FAIL, 1);
	assert_true(is_open(&w));

	w = world_of(ratio_of(10, 0));
	calls(&w, OK, 6);
	calls(&w, FAIL, 5);
	assert_false(is_open(&w));
	calls(&w, FAIL, 1);
	assert_true(is_open(&w));

	w = world_of(ratio_of(10, 0));
	calls(&w, FAIL, 9);
	assert_false(is_open(&w));
	calls(&w, OK, 1);
	assert_true(is_open(&w));

	w = world_of(ratio_of(0, 0));
	calls(&w, FAIL, 1);
	assert_true(is_open(&w));
}

/* Whenever a key is born, its first results stay for nine slices and a part. */
static void window_of_time_forgets_after_its_length_and_not_before(void **state)
{
	u32 born;

	(void)state;
	for (born = 0; born < 10; born++) {
		struct world w = world_of(ratio_of(2, 0));

		w.now += born * SEC;
		kretry_shared_start(&w.p, &w.s, w.now);
		calls(&w, FAIL, 1);
		pass(&w, 10 * SEC - 1);
		calls(&w, FAIL, 1);
		assert_true(is_open(&w));

		w = world_of(ratio_of(2, 0));
		w.now += born * SEC;
		kretry_shared_start(&w.p, &w.s, w.now);
		calls(&w, FAIL, 1);
		pass(&w, 10 * SEC);
		calls(&w, FAIL, 1);
		assert_false(is_open(&w));
		pass(&w, 3600 * SEC);
		assert_true(kretry_shared_is_new(&w.p, &w.s) == false);
		assert_int_equal(w.s.streak, 2);
		calls(&w, OK, 1);
		pass(&w, 10 * SEC);
		assert_true(kretry_shared_is_new(&w.p, &w.s));
	}
}

static void window_of_time_drops_slices_one_by_one(void **state)
{
	struct world w = world_of(ratio_of(32768, 0));
	u32 i, j, sum;

	(void)state;
	for (i = 0; i < 10; i++, pass(&w, SEC))
		calls(&w, OK, 1 << i);
	for (i = 1; i <= 10; i++, pass(&w, SEC)) {
		for (sum = 0, j = 0; j < KRETRY_SLICES; j++)
			sum += w.s.calls[j];
		assert_int_equal(sum, 1024 - (1 << i));
	}
}

static void window_of_calls_forgets_by_tenths_and_not_with_time(void **state)
{
	struct world w = world_of(ratio_of(100, 100));

	(void)state;
	calls(&w, FAIL, 49);
	calls(&w, OK, 51);
	assert_false(is_open(&w));
	/* 9 failures more drop the 10 oldest: 48 of 99. */
	calls(&w, FAIL, 9);
	assert_false(is_open(&w));

	w = world_of(ratio_of(100, 100));
	calls(&w, FAIL, 99);
	pass(&w, 3600 * SEC);
	assert_false(is_open(&w));
	calls(&w, FAIL, 1);
	assert_true(is_open(&w));

	w = world_of(ratio_of(10, 19));
	calls(&w, OK, 10);
	calls(&w, FAIL, 4);
	assert_false(is_open(&w));
	calls(&w, FAIL, 1);
	assert_true(is_open(&w));
}

static void window_of_calls_at_its_largest_still_turns(void **state)
{
	struct world w = world_of(ratio_of(655350, 655350));

	(void)state;
	calls(&w, OK, 65535);
	assert_int_equal(w.s.slice, 0);
	assert_int_equal(w.s.calls[0], 65535);
	calls(&w, OK, 1);
	assert_int_equal(w.s.slice, 1);
	assert_int_equal(w.s.calls[0], 65535);
	assert_int_equal(w.s.calls[1], 1);
}

/* More results in one slice than it can count keep their share. */
static void slice_over_its_largest_count_keeps_the_ratio(void **state)
{
	struct world w = world_of(ratio_of(32768, 0));
	u32 i;

	(void)state;
	for (i = 0; i < 200000; i++)
		calls(&w, i % 5 < 2 ? FAIL : OK, 1);
	assert_false(is_open(&w));
	assert_in_range(w.s.calls[w.s.slice], 32768, 65535);
	assert_in_range(w.s.failures[w.s.slice] * 1000 / w.s.calls[w.s.slice], 395, 405);
	calls(&w, FAIL, 70000);
	assert_true(is_open(&w));
}

static void slow_calls_open_by_their_share_and_each_once(void **state)
{
	struct kretry_policy p = ratio_of(4, 0);
	struct world w;
	u32 i;

	(void)state;
	p.breaker.ratio_ppm = 0;
	p.breaker.slow_ppm = KRETRY_PPM / 2;
	p.breaker.slow_ns = 100 * MS;
	p.breaker.min_reporters = 1;
	w = world_of(p);
	for (i = 0; i < 10; i++)
		call_taking(&w, OK, 100 * MS);
	calls(&w, FAIL, 10);
	assert_false(is_open(&w));
	w = world_of(p);
	calls(&w, OK, 2);
	call_taking(&w, OK, 100 * MS + 1);
	assert_false(is_open(&w));
	call_taking(&w, KRETRY_EVENT_PERMANENT, SEC);
	assert_true(is_open(&w));
}

/* The open time of a slow success is drawn too. */
static void success_that_opens_needs_a_draw(void **state)
{
	struct kretry_policy p = ratio_of(1, 0);
	struct kretry_op op = { .event = OK };

	(void)state;
	assert_false(kretry_needs_draw(&p, &op));
	p.breaker.open_jitter_ppm = 1;
	assert_true(kretry_needs_draw(&p, &op));
	op.event = KRETRY_EVENT_PERMANENT;
	assert_true(kretry_needs_draw(&p, &op));
	op.event = KRETRY_EVENT_CANCELLED;
	assert_false(kretry_needs_draw(&p, &op));
}

static struct kretry_policy agreed_by(u32 reporters)
{
	struct kretry_policy p = streak_of(3);

	p.breaker.min_reporters = reporters;
	p.breaker.window_ns = 10 * SEC;
	return p;
}

static void broken_client_alone_does_not_open_for_the_others(void **state)
{
	struct world w = world_of(agreed_by(2));

	(void)state;
	calls_of(&w, 1, OK, 1);
	calls_of(&w, 2, FAIL, 100);
	assert_false(is_open(&w));
	calls_of(&w, 1, FAIL, 1);
	assert_true(is_open(&w));
}

static void only_client_there_is_may_open_alone(void **state)
{
	struct world w = world_of(agreed_by(8));

	(void)state;
	calls_of(&w, 1, FAIL, 3);
	assert_true(is_open(&w));

	/* With two of them it takes both, until the window has forgotten the other. */
	w = world_of(agreed_by(8));
	calls_of(&w, 2, OK, 1);
	calls_of(&w, 1, FAIL, 3);
	assert_false(is_open(&w));
	pass(&w, 10 * SEC);
	calls_of(&w, 1, FAIL, 1);
	assert_true(is_open(&w));
}

static void failure_that_lapsed_no_longer_agrees(void **state)
{
	struct world w = world_of(agreed_by(2));

	(void)state;
	calls_of(&w, 2, FAIL, 1);
	pass(&w, 9 * SEC);
	calls_of(&w, 2, OK, 1);
	pass(&w, 2 * SEC);
	calls_of(&w, 1, FAIL, 5);
	assert_false(is_open(&w));
	calls_of(&w, 2, FAIL, 1);
	assert_true(is_open(&w));
}

/* Eight are told apart; failures of those that come later are seen all the same. */
static void failures_of_a_ninth_process_are_seen(void **state)
{
	struct kretry_policy p = agreed_by(2);
	struct world w;
	u16 who;

	(void)state;
	w = world_of(p);
	for (who = 1; who <= 40; who++)
		calls_of(&w, who, OK, 1);
	calls_of(&w, 41, FAIL, 9);
	assert_false(is_open(&w));
	calls_of(&w, 42, FAIL, 1);
	assert_true(is_open(&w));

	p = ratio_of(4, 0);
	p.breaker.min_reporters = 1;
	w = world_of(p);
	for (who = 1; who <= 8; who++)
		calls_of(&w, who, OK, 1);
	calls_of(&w, 9, FAIL, 8);
	assert_true(is_open(&w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streak_of_failures_opens_and_a_success_ends_it),
		cmocka_unit_test(streak_at_its_largest_opens_once_and_does_not_wrap),
		cmocka_unit_test(event_of_each_kind_counts_as_documented),
		cmocka_unit_test(ratio_needs_its_calls_and_is_met_at_its_edge),
		cmocka_unit_test(window_of_time_forgets_after_its_length_and_not_before),
		cmocka_unit_test(window_of_time_drops_slices_one_by_one),
		cmocka_unit_test(window_of_calls_forgets_by_tenths_and_not_with_time),
		cmocka_unit_test(window_of_calls_at_its_largest_still_turns),
		cmocka_unit_test(slice_over_its_largest_count_keeps_the_ratio),
		cmocka_unit_test(slow_calls_open_by_their_share_and_each_once),
		cmocka_unit_test(success_that_opens_needs_a_draw),
		cmocka_unit_test(broken_client_alone_does_not_open_for_the_others),
		cmocka_unit_test(only_client_there_is_may_open_alone),
		cmocka_unit_test(failure_that_lapsed_no_longer_agrees),
		cmocka_unit_test(failures_of_a_ninth_process_are_seen),
	};

	return run_group(tests);
}
