// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The decision path: each event in each state, the order of the checks, what an op keeps. */
#include "unit.h"

#define FIRST_FAILURE	KRETRY_EVENT_TRANSIENT
#define LAST_EVENT	KRETRY_EVENT_PERMANENT

static struct kretry_policy plain_policy(void)
{
	return policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, SEC, 10 * SEC);
}

/* Decide a copy of @op, which must be well-formed. */
static struct kretry_op decided(const struct kretry_policy *p, struct kretry_op op, u64 now)
{
	assert_int_equal(kretry_decide(p, &op, now, 0), 0);
	assert_int_equal(op.event, KRETRY_EVENT_NONE);
	assert_int_equal(op.hint_ns, 0);
	assert_int_equal(op.flags & (KRETRY_OP_HINT | KRETRY_OP_NO_RETRY), 0);
	return op;
}

static void assert_same_op(const struct kretry_op *a, const struct kretry_op *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

/* Every event, with what it does to an op that has two retries behind it. */
static void event_of_each_kind_changes_only_its_fields(void **state)
{
	static const u8 verdicts[] = {
		[KRETRY_EVENT_BEGIN] = KRETRY_GO, [KRETRY_EVENT_OK] = KRETRY_DONE,
		[KRETRY_EVENT_CANCELLED] = KRETRY_DONE, [KRETRY_EVENT_TRANSIENT] = KRETRY_RETRY,
		[KRETRY_EVENT_THROTTLED] = KRETRY_RETRY, [KRETRY_EVENT_UNKNOWN] = KRETRY_RETRY,
		[KRETRY_EVENT_PERMANENT] = KRETRY_STOP_PERMANENT,
	};
	struct kretry_policy p = plain_policy();
	struct kretry_op before, want;
	u64 now = NOW + 7 * SEC;
	u8 event;

	(void)state;
	for (event = KRETRY_EVENT_BEGIN; event <= LAST_EVENT; event++) {
		before = op_of(event, KRETRY_OP_IDEMPOTENT | 0xff00, 2);
		before.generation = 77;
		before.delay_ns = 3 * SEC;
		want = before;
		want.event = KRETRY_EVENT_NONE;
		want.flags = KRETRY_OP_IDEMPOTENT;
		want.verdict = verdicts[event];
		if (want.verdict == KRETRY_GO) {
			want.generation = 1;
			want.deadline_ns = now;
		} else if (want.verdict == KRETRY_RETRY) {
			want.attempt = 3;
			want.delay_ns = SEC;
			want.deadline_ns = now + SEC;
		} else if (want.verdict == KRETRY_DONE) {
			want.attempt = 0;
			want.start_ns = 0;
			want.delay_ns = 0;
			want.deadline_ns = 0;
		} else {
			want.deadline_ns = 0;
		}
		before = decided(&p, before, now);
		assert_same_op(&before, &want);
	}
}

static void first_event_without_begin_implies_it(void **state)
{
	struct kretry_policy p = plain_policy();
	struct kretry_op op = { .event = KRETRY_EVENT_TRANSIENT };

	(void)state;
	op = decided(&p, op, NOW);
	assert_int_equal(op.verdict, KRETRY_RETRY);
	assert_int_equal(op.start_ns, NOW);
	assert_int_equal(op.deadline_ns, NOW + SEC);

	op = (struct kretry_op){ .event = KRETRY_EVENT_BEGIN };
	op = decided(&p, op, NOW);
	assert_int_equal(op.start_ns, NOW);

	op = (struct kretry_op){ .event = KRETRY_EVENT_OK };
	op = decided(&p, op, NOW);
	assert_int_equal(op.verdict, KRETRY_DONE);
	assert_int_equal(op.start_ns, 0);
}

static void start_in_the_future_counts_as_now(void **state)
{
	static const u64 starts[] = { NOW + 1, NS_MAX, NS_MAX + 1, U64_MAX };
	struct kretry_policy p = plain_policy();
	size_t i;

	(void)state;
	p.max_elapsed_ns = SEC;
	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		struct kretry_op op = op_of(KRETRY_EVENT_TRANSIENT, 0, 0);

		op.start_ns = starts[i];
		op = decided(&p, op, NOW);
		assert_int_equal(op.verdict, KRETRY_RETRY);
		assert_int_equal(op.start_ns, NOW);

		op.event = KRETRY_EVENT_BEGIN;
		op.start_ns = starts[i];
		op = decided(&p, op, NOW);
		assert_int_equal(op.start_ns, NOW);
	}
	p.max_elapsed_ns = SEC - 1;
	assert_int_equal(decided(&p, op_of(KRETRY_EVENT_TRANSIENT, 0, 0), NOW).verdict,
			 KRETRY_STOP_ELAPSED);
}

/* With all reasons to stop at once, then one less each time: the order of the checks. */
static void stop_reasons_in_their_order(void **state)
{
	struct kretry_policy p = plain_policy();
	struct kretry_op op = op_of(KRETRY_EVENT_PERMANENT, KRETRY_OP_HINT, 3), after;
	u8 verdicts[5], i;

	(void)state;
	p.max_retries = 3;
	p.max_elapsed_ns = SEC - 1;
	p.hint_limit_ns = SEC;
	op.hint_ns = 2 * SEC;
	for (i = 0; i < ARRAY_SIZE(verdicts); i++) {
		after = decided(&p, op, NOW);
		verdicts[i] = after.verdict;
		assert_int_equal(after.attempt, op.attempt);
		assert_int_equal(after.delay_ns, op.delay_ns);
		assert_int_equal(after.deadline_ns, 0);
		if (i == 0)
			op.event = KRETRY_EVENT_UNKNOWN;
		else if (i == 1)
			op.flags |= KRETRY_OP_IDEMPOTENT;
		else if (i == 2)
			op.attempt = 2;
		else
			op.hint_ns = SEC;
	}
	for (i = 0; i < ARRAY_SIZE(verdicts); i++)
		assert_int_equal(verdicts[i], KRETRY_STOP_PERMANENT + i);
	p.max_elapsed_ns = SEC;
	assert_int_equal(decided(&p, op, NOW).verdict, KRETRY_RETRY);
}

static void unknown_stops_unless_op_or_policy_is_idempotent(void **state)
{
	struct kretry_policy p = plain_policy();
	u8 event;

	(void)state;
	for (event = FIRST_FAILURE; event < KRETRY_EVENT_PERMANENT; event++)
		assert_int_equal(decided(&p, op_of(event, 0, 0), NOW).verdict,
				 event == KRETRY_EVENT_UNKNOWN ? KRETRY_STOP_UNSAFE : KRETRY_RETRY);
	event = KRETRY_EVENT_UNKNOWN;
	assert_int_equal(decided(&p, op_of(event, KRETRY_OP_IDEMPOTENT, 0), NOW).verdict,
			 KRETRY_RETRY);
	p.flags = KRETRY_POLICY_ASSUME_IDEMPOTENT;
	assert_int_equal(decided(&p, op_of(event, 0, 0), NOW).verdict, KRETRY_RETRY);
	assert_int_equal(decided(&p, op_of(KRETRY_EVENT_PERMANENT, 0, 0), NOW).verdict,
			 KRETRY_STOP_PERMANENT);
}

static void max_retries_edges_exact(void **state)
{
	static const struct {
		u32 max_retries, attempt;
		u8 verdict;
		u32 after;
	} edges[] = {
		{ 0, 0, KRETRY_STOP_LIMIT, 0 },
		{ 1, 0, KRETRY_RETRY, 1 },
		{ 1, 1, KRETRY_STOP_LIMIT, 1 },
		{ 3, 2, KRETRY_RETRY, 3 },
		{ 3, 3, KRETRY_STOP_LIMIT, 3 },
		{ 3, U32_MAX, KRETRY_STOP_LIMIT, U32_MAX },
		{ U32_MAX - 1, U32_MAX - 2, KRETRY_RETRY, U32_MAX - 1 },
		{ U32_MAX - 1, U32_MAX - 1, KRETRY_STOP_LIMIT, U32_MAX - 1 },
		{ KRETRY_NO_LIMIT, U32_MAX - 1, KRETRY_RETRY, U32_MAX },
		{ KRETRY_NO_LIMIT, U32_MAX, KRETRY_RETRY, U32_MAX },
	};
	struct kretry_policy p = plain_policy();
	struct kretry_op op;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(edges); i++) {
		p.max_retries = edges[i].max_retries;
		op = decided(&p, op_of(KRETRY_EVENT_TRANSIENT, 0, edges[i].attempt), NOW);
		assert_int_equal(op.verdict, edges[i].verdict);
		assert_int_equal(op.attempt, edges[i].after);
	}
}

static void max_elapsed_runs_from_start_and_includes_its_end(void **state)
{
	struct kretry_policy p = plain_policy();
	struct kretry_op op = op_of(KRETRY_EVENT_TRANSIENT, 0, 0);

	(void)state;
	p.max_elapsed_ns = 5 * SEC;
	assert_int_equal(decided(&p, op, NOW + 4 * SEC).verdict, KRETRY_RETRY);
	assert_int_equal(decided(&p, op, NOW + 4 * SEC + 1).verdict, KRETRY_STOP_ELAPSED);
	op.start_ns = 1;
	assert_int_equal(decided(&p, op, NOW).verdict, KRETRY_STOP_ELAPSED);
	p.max_elapsed_ns = NS_MAX;
	assert_int_equal(decided(&p, op, NOW).verdict, KRETRY_RETRY);
	p.max_elapsed_ns = 0;
	assert_int_equal(decided(&p, op, NS_MAX).verdict, KRETRY_RETRY);
}

static void ok_sooner_than_reset_after_keeps_backoff(void **state)
{
	struct kretry_policy p = plain_policy();
	struct kretry_op op = op_of(KRETRY_EVENT_OK, 0, 4), want, after;

	(void)state;
	op.delay_ns = 6 * SEC;
	op.start_ns = NOW - 60 * SEC;
	want = op;
	want.event = KRETRY_EVENT_NONE;
	want.verdict = KRETRY_DONE;
	p.reset_after_ns = 10 * SEC;
	after = decided(&p, op, NOW + 10 * SEC - 1);
	assert_same_op(&after, &want);
	after = decided(&p, op, NOW - SEC);
	assert_same_op(&after, &want);

	assert_int_equal(decided(&p, op, NOW + 10 * SEC).attempt, 0);
	p.reset_after_ns = 0;
	assert_int_equal(decided(&p, op, NOW).attempt, 0);
	assert_int_equal(decided(&p, op, NOW - SEC).attempt, 0);
	p.reset_after_ns = 10 * SEC;
	op.event = KRETRY_EVENT_CANCELLED;
	assert_int_equal(decided(&p, op, NOW).attempt, 0);
}

static void kept_backoff_goes_on_with_next_failure(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_NONE, SEC, 60 * SEC);
	struct kretry_op op = op_of(KRETRY_EVENT_OK, 0, 3);

	(void)state;
	p.reset_after_ns = SEC;
	op = decided(&p, op, NOW + SEC / 2);
	op.event = KRETRY_EVENT_TRANSIENT;
	op = decided(&p, op, NOW + SEC);
	assert_int_equal(op.delay_ns, 8 * SEC);
	assert_int_equal(op.attempt, 4);
}

/* A malformed op is an error, and not a byte of it changes. */
static void assert_refused(struct kretry_op op)
{
	struct kretry_policy p = plain_policy();
	struct kretry_op before = op;

	assert_int_equal(kretry_decide(&p, &op, NOW, U64_MAX), -EINVAL);
	assert_same_op(&op, &before);
}

static void malformed_op_refused_unchanged(void **state)
{
	struct kretry_op op;
	u32 event, bit;

	(void)state;
	assert_refused(op_of(KRETRY_EVENT_NONE, 0, 1));
	for (event = LAST_EVENT + 1; event < 256; event++)
		assert_refused(op_of(event, 0, 1));
	for (event = KRETRY_EVENT_BEGIN; event <= LAST_EVENT; event++) {
		for (bit = 6; bit < 8; bit++)
			assert_refused(op_of(event, 1U << bit, 1));
		assert_refused(op_of(event, KRETRY_OP_QUEUE | 0x40, 1));
		op = op_of(event, 0, 1);
		op.hint_ns = 1;
		assert_refused(op);
	}
	for (event = KRETRY_EVENT_BEGIN; event < FIRST_FAILURE; event++) {
		assert_refused(op_of(event, KRETRY_OP_HINT, 1));
		assert_refused(op_of(event, KRETRY_OP_NO_RETRY, 1));
	}
}

/* QUEUE says where the answer is waited for, and changes nothing about it. */
static void queued_op_decided_as_any_other_and_stays_queued(void **state)
{
	struct kretry_policy p = plain_policy();
	struct kretry_op want, op;
	u8 event;

	(void)state;
	for (event = KRETRY_EVENT_BEGIN; event <= LAST_EVENT; event++) {
		want = decided(&p, op_of(event, 0, 2), NOW + SEC);
		want.flags |= KRETRY_OP_QUEUE;
		op = decided(&p, op_of(event, KRETRY_OP_QUEUE, 2), NOW + SEC);
		assert_same_op(&op, &want);
	}
}

static void replay_of_an_answered_op_einval(void **state)
{
	struct kretry_policy p = plain_policy();
	u8 event;

	(void)state;
	for (event = KRETRY_EVENT_BEGIN; event <= LAST_EVENT; event++)
		assert_refused(decided(&p, op_of(event, KRETRY_OP_IDEMPOTENT, 0), NOW));
}

static void fields_all_at_their_largest_saturate(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_DECORRELATED, KRETRY_JITTER_NONE, SEC, NS_MAX);
	struct kretry_op op;
	u8 event;

	(void)state;
	p.max_elapsed_ns = NS_MAX;
	p.reset_after_ns = NS_MAX;
	p.hint_over_own_ns = NS_MAX;
	for (event = KRETRY_EVENT_BEGIN; event <= LAST_EVENT; event++) {
		memset(&op, 0xff, sizeof(op));
		op.event = event;
		op.flags = 0xff00 | KRETRY_OP_IDEMPOTENT;
		op.hint_ns = 0;
		if (event >= FIRST_FAILURE) {
			op.flags |= KRETRY_OP_HINT;
			op.hint_ns = U64_MAX;
		}
		assert_int_equal(kretry_decide(&p, &op, NS_MAX - 1, U64_MAX), 0);
		if (op.verdict == KRETRY_RETRY) {
			assert_int_equal(op.deadline_ns, NS_MAX);
			assert_int_equal(op.delay_ns, NS_MAX);
			assert_int_equal(op.start_ns, NS_MAX - 1);
			assert_int_equal(op.attempt, U32_MAX);
			assert_int_equal(op.flags, KRETRY_OP_IDEMPOTENT);
		}
		if (event == KRETRY_EVENT_OK)
			assert_int_equal(op.attempt, U32_MAX);
	}
}

static void draw_needed_only_where_a_delay_is_drawn(void **state)
{
	struct kretry_policy p;
	struct kretry_op op;
	u8 strategy, event;

	(void)state;
	for (strategy = KRETRY_FIXED; strategy <= KRETRY_TABLE; strategy++) {
		bool draws = strategy == KRETRY_DECORRELATED || strategy == KRETRY_SLOTTED;

		for (event = KRETRY_EVENT_BEGIN; event <= LAST_EVENT; event++) {
			bool delayed = event >= FIRST_FAILURE && event != KRETRY_EVENT_PERMANENT;

			op = op_of(event, 0, 0);
			p = policy_of(strategy, KRETRY_JITTER_NONE, SEC, 9 * SEC);
			assert_int_equal(kretry_needs_draw(&p, &op), draws && delayed);
			p = policy_of(strategy, KRETRY_JITTER_FULL, SEC, 9 * SEC);
			assert_int_equal(kretry_needs_draw(&p, &op), delayed);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_of_each_kind_changes_only_its_fields),
		cmocka_unit_test(first_event_without_begin_implies_it),
		cmocka_unit_test(start_in_the_future_counts_as_now),
		cmocka_unit_test(stop_reasons_in_their_order),
		cmocka_unit_test(unknown_stops_unless_op_or_policy_is_idempotent),
		cmocka_unit_test(max_retries_edges_exact),
		cmocka_unit_test(max_elapsed_runs_from_start_and_includes_its_end),
		cmocka_unit_test(ok_sooner_than_reset_after_keeps_backoff),
		cmocka_unit_test(kept_backoff_goes_on_with_next_failure),
		cmocka_unit_test(malformed_op_refused_unchanged),
		cmocka_unit_test(queued_op_decided_as_any_other_and_stays_queued),
		cmocka_unit_test(replay_of_an_answered_op_einval),
		cmocka_unit_test(fields_all_at_their_largest_saturate),
		cmocka_unit_test(draw_needed_only_where_a_delay_is_drawn),
	};

	return run_group(tests);
}
