// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which results a breaker counts: those of its state, or of a wait that has begun in it. */
#include "world.h"

#define FAIL	KRETRY_EVENT_TRANSIENT
#define HALF	0x7fffffffU

static struct kretry_policy breaking(void)
{
	struct kretry_policy p = plain_shared();

	p.breaker = (struct kretry_breaker){
		.consecutive = 2, .probes = 2, .successes_to_close = 2, .open_ns = SEC,
		.open_cap_ns = SEC, .probe_timeout_ns = SEC,
	};
	return p;
}

static void result_of(struct world *w, u32 generation, bool probe, u8 event)
{
	struct kretry_result result = {
		.now = w->now, .generation = generation, .reporter = 1, .event = event,
		.probe = probe,
	};

	kretry_breaker_record(&w->p.breaker, &w->s, &result);
}

/* Whether one failure in @generation counts in a closed breaker of @own. */
static bool counts(u32 own, u32 generation)
{
	struct world w = world_of(breaking());
	struct kretry_shared before;

	w.s.generation = own;
	before = w.s;
	result_of(&w, generation, false, FAIL);
	if (w.s.streak) {
		before.streak = 1;
		assert_memory_equal(&w.s, &before, sizeof(before));
		return true;
	}
	assert_memory_equal(&w.s, &before, sizeof(before));
	return false;
}

static void closed_counts_its_own_generation_and_later_ones(void **state)
{
	static const struct {
		u32 own, generation;
		bool counted;
	} cases[] = {
		{ 5, 5, true }, { 5, 6, true }, { 5, 4, false }, { 5, 1, false },
		{ 5, 5 + HALF, true }, { 5, 6 + HALF, false }, { 1, HALF + 1, true },
		{ 1, HALF + 2, false }, { 1, U32_MAX, false }, { 2, 1, false },
		/* They come round, and leave 0 out. */
		{ U32_MAX, 1, true }, { U32_MAX, U32_MAX, true }, { U32_MAX - 1, U32_MAX, true },
		{ U32_MAX - 1, 2, true }, { U32_MAX, U32_MAX - 1, false },
		{ U32_MAX, HALF - 1, true }, { U32_MAX, HALF, false }, { HALF, U32_MAX, false },
		{ HALF + 1, U32_MAX, true },
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (counts(cases[i].own, cases[i].generation) != cases[i].counted)
			fail_msg("%u in %u", cases[i].generation, cases[i].own);
}

static void generation_zero_is_never_counted(void **state)
{
	static const u32 own[] = { 1, 2, HALF, HALF + 1, HALF + 2, U32_MAX - 1, U32_MAX };
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(own); i++)
		assert_false(counts(own[i], 0));
}

/* A success that is not counted does not end a streak either. */
static void success_of_an_earlier_generation_leaves_the_streak(void **state)
{
	struct world w = world_of(breaking());

	(void)state;
	w.s.generation = 7;
	result_of(&w, 7, false, FAIL);
	result_of(&w, 6, false, KRETRY_EVENT_OK);
	assert_int_equal(w.s.streak, 1);
	result_of(&w, 8, false, KRETRY_EVENT_OK);
	assert_int_equal(w.s.streak, 0);
}

static void failures_of_waits_alone_open_it(void **state)
{
	struct world w = world_of(breaking());

	(void)state;
	w.s.generation = U32_MAX;
	result_of(&w, 3, false, FAIL);
	assert_int_equal(w.s.state, KRETRY_CLOSED);
	result_of(&w, 1, false, FAIL);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	assert_int_equal(w.s.changed_ns, w.now + SEC);
}

/* Later than the state says nothing there: who waited must have been given a probe. */
static void later_generation_counts_half_open_only_as_a_probe(void **state)
{
	struct world w = world_of(breaking());
	struct kretry_shared before;

	(void)state;
	w.s.generation = 7;
	w.s.state = KRETRY_HALF_OPEN;
	before = w.s;
	result_of(&w, 8, false, FAIL);
	result_of(&w, 6, false, FAIL);
	result_of(&w, 0, false, FAIL);
	assert_memory_equal(&w.s, &before, sizeof(before));
	result_of(&w, 8, true, KRETRY_EVENT_OK);
	assert_int_equal(w.s.probes_ok, 1);
	result_of(&w, 8, true, FAIL);
	assert_int_equal(w.s.state, KRETRY_OPEN);
}

/* Where nobody is refused there are no probes: what has begun since counts, and nothing older. */
static void later_generation_counts_half_open_for_metrics_only(void **state)
{
	struct world w = world_of(breaking());
	u32 by_flag;

	(void)state;
	for (by_flag = 0; by_flag < 2; by_flag++) {
		w = world_of(breaking());
		w.s.generation = U32_MAX;
		w.s.state = KRETRY_HALF_OPEN;
		w.s.mode = by_flag ? KRETRY_MODE_AUTOMATIC : KRETRY_MODE_METRICS_ONLY;
		w.p.breaker.flags = by_flag ? KRETRY_BREAKER_METRICS_ONLY : 0;
		result_of(&w, 0, false, FAIL);
		result_of(&w, U32_MAX - 1, false, FAIL);
		assert_int_equal(w.s.state, KRETRY_HALF_OPEN);
		assert_int_equal(w.s.probes_failed, 0);
		result_of(&w, 1, false, KRETRY_EVENT_OK);
		assert_int_equal(w.s.probes_ok, 1);
		result_of(&w, U32_MAX, false, KRETRY_EVENT_OK);
		assert_int_equal(w.s.state, KRETRY_CLOSED);
	}
}

static void any_generation_counts_for_nothing_while_open(void **state)
{
	static const u32 generations[] = { 0, 6, 7, 8 };
	struct world w = world_of(breaking());
	struct kretry_shared before;
	u32 i;

	(void)state;
	w.s.generation = 7;
	w.s.state = KRETRY_OPEN;
	w.s.changed_ns = w.now + SEC;
	before = w.s;
	for (i = 0; i < ARRAY_SIZE(generations); i++) {
		result_of(&w, generations[i], false, FAIL);
		assert_memory_equal(&w.s, &before, sizeof(before));
		result_of(&w, generations[i], true, KRETRY_EVENT_OK);
		assert_memory_equal(&w.s, &before, sizeof(before));
	}
}

/* A wait from before the breaker opened reports when it is closed again. */
static void wait_from_before_an_outage_is_not_counted_after_it(void **state)
{
	struct world w = world_of(breaking());
	struct kretry_op op[2] = { { .policy = 1 }, { .policy = 1 } };
	u32 i, wait, own;

	(void)state;
	pass(&w, 0);
	own = w.s.generation;
	wait = ++w.generation;
	calls(&w, FAIL, 2);
	assert_int_equal(w.s.state, KRETRY_OPEN);
	pass(&w, SEC);
	for (i = 0; i < 2; i++)
		assert_int_equal(step(&w, &op[i], KRETRY_EVENT_BEGIN), KRETRY_GO);
	for (i = 0; i < 2; i++)
		assert_int_equal(step(&w, &op[i], KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(w.s.state, KRETRY_CLOSED);
	pass(&w, 0);
	assert_true(w.s.generation > wait && wait > own);
	result_of(&w, wait, false, FAIL);
	assert_int_equal(w.s.streak, 0);
	result_of(&w, ++w.generation, false, FAIL);
	assert_int_equal(w.s.streak, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_counts_its_own_generation_and_later_ones),
		cmocka_unit_test(generation_zero_is_never_counted),
		cmocka_unit_test(success_of_an_earlier_generation_leaves_the_streak),
		cmocka_unit_test(failures_of_waits_alone_open_it),
		cmocka_unit_test(later_generation_counts_half_open_only_as_a_probe),
		cmocka_unit_test(later_generation_counts_half_open_for_metrics_only),
		cmocka_unit_test(any_generation_counts_for_nothing_while_open),
		cmocka_unit_test(wait_from_before_an_outage_is_not_counted_after_it),
	};

	return run_group(tests);
}
