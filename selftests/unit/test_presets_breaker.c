// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The presets' breakers open, wait and close as the rules of their systems say. */
#include "replay.h"

#define OK		KRETRY_EVENT_OK
#define TRANSIENT	KRETRY_EVENT_TRANSIENT
#define THROTTLED	KRETRY_EVENT_THROTTLED
#define BEGIN		KRETRY_EVENT_BEGIN

/* What a failure is answered by matters to the retry, not to the breaker. */
static void results(struct replay *r, unsigned int count, u8 event)
{
	while (count--) {
		assert_int_equal(begin(r), KRETRY_GO);
		report(r, event);
	}
}

static void assert_closed(const struct replay *r)
{
	assert_int_equal(r->shared.state, KRETRY_CLOSED);
}

/* Half-open from now on. One attempt passes, a second does not; the first one reports @event. */
static void probe_alone(struct replay *r, u8 event)
{
	struct kretry_op probe;
	u32 period;

	r->now = r->shared.changed_ns;
	assert_int_equal(begin(r), KRETRY_GO);
	assert_true(r->op.flags & KRETRY_OP_PROBE);
	probe = r->op;
	period = r->period;
	assert_int_equal(begin(r), KRETRY_STOP_OPEN);
	r->op = probe;
	r->period = period;
	report(r, event);
}

/* Seven failures in a row; 1 s, doubled up to 60 s, and up to half of it more. */
static void linkerd_consecutive_failures(void **state)
{
	struct replay r;
	u64 time, high;

	(void)state;
	both_draws(&r, "linkerd") {
		results(&r, 6, TRANSIENT);
		results(&r, 1, OK);
		results(&r, 6, TRANSIENT);
		results(&r, 1, THROTTLED);
		results(&r, 6, TRANSIENT);
		assert_closed(&r);
		results(&r, 1, TRANSIENT);
		assert_open_for(&r, SEC, 1500 * MS);
		assert_int_equal(begin(&r), KRETRY_STOP_OPEN);
		for (time = 2 * SEC; time < 60 * SEC; time *= 2) {
			high = time * 3 / 2;
			probe_alone(&r, TRANSIENT);
			assert_open_for(&r, time, high < 60 * SEC ? high : 60 * SEC);
		}
		probe_alone(&r, TRANSIENT);
		assert_open_for(&r, 30 * SEC, 60 * SEC);
		probe_alone(&r, OK);
		assert_closed(&r);
		results(&r, 7, TRANSIENT);
		assert_open_for(&r, SEC, 1500 * MS);
	}
}

/* Five in a row, or a success rate below 80 % of at least five in 30 s. */
static void finagle_failure_accrual(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "finagle") {
		results(&r, 8, OK);
		results(&r, 2, TRANSIENT);
		assert_closed(&r);
		results(&r, 1, TRANSIENT);
		assert_open_for(&r, 5 * SEC, 7500 * MS);
		probe_alone(&r, TRANSIENT);
		assert_open_for(&r, 10 * SEC, 15 * SEC);
		probe_alone(&r, OK);
		assert_closed(&r);
		results(&r, 1, TRANSIENT);
		r.now += 31 * SEC;
		results(&r, 3, TRANSIENT);
		results(&r, 1, OK);
		assert_closed(&r);
		r.now += 31 * SEC;
		results(&r, 4, TRANSIENT);
		assert_closed(&r);
		results(&r, 1, TRANSIENT);
		assert_open_for(&r, 5 * SEC, 7500 * MS);
	}
}

/* Five in a row eject for 30 s; then it is back for everybody. */
static void envoy_consecutive_5xx(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "envoy") {
		results(&r, 4, TRANSIENT);
		results(&r, 1, THROTTLED);
		results(&r, 4, TRANSIENT);
		assert_closed(&r);
		results(&r, 1, TRANSIENT);
		assert_open_for(&r, 30 * SEC, 30 * SEC);
		r.now += 30 * SEC - 1;
		assert_int_equal(begin(&r), KRETRY_STOP_OPEN);
		r.now++;
		assert_int_equal(begin(&r), KRETRY_GO);
		assert_int_equal(begin(&r), KRETRY_GO);
		report(&r, TRANSIENT);
		assert_open_for(&r, 60 * SEC, 60 * SEC);
		r.now += 60 * SEC;
		results(&r, 1, OK);
		assert_closed(&r);
	}
}

/* Half of 100 results. Then ten permits, and the rate of the ten decides. */
static void resilience4j_count_based_window(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "resilience4j") {
		results(&r, 49, OK);
		results(&r, 50, TRANSIENT);
		assert_closed(&r);
		results(&r, 1, OK);
		assert_open_for(&r, 60 * SEC, 60 * SEC);
		r.now += 60 * SEC;
		results(&r, 5, TRANSIENT);
		results(&r, 4, OK);
		assert_int_equal(r.shared.state, KRETRY_HALF_OPEN);
		results(&r, 1, OK);
		assert_open_for(&r, 60 * SEC, 60 * SEC);
		r.now += 60 * SEC;
		results(&r, 4, TRANSIENT);
		results(&r, 6, OK);
		assert_closed(&r);
		results(&r, 49, TRANSIENT);
		results(&r, 51, OK);
		assert_closed(&r);
	}
}

static void resilience4j_ten_permits_at_one_time(void **state)
{
	struct replay r;
	unsigned int i;

	(void)state;
	both_draws(&r, "resilience4j") {
		results(&r, 100, TRANSIENT);
		r.now += 60 * SEC;
		for (i = 0; i < 10; i++)
			assert_int_equal(begin(&r), KRETRY_GO);
		assert_int_equal(begin(&r), KRETRY_STOP_OPEN);
	}
}

/* All of 100 results slower than 60 s. */
static void resilience4j_slow_calls(void **state)
{
	struct replay r;
	unsigned int i;

	(void)state;
	both_draws(&r, "resilience4j") {
		for (i = 0; i < 100; i++) {
			assert_closed(&r);
			assert_int_equal(begin(&r), KRETRY_GO);
			r.now += 60 * SEC + 1;
			report(&r, OK);
		}
		assert_open_for(&r, 60 * SEC, 60 * SEC);
	}
}

/* Half of at least 20 in 10 s; no retries; success of the single test closes and forgets. */
static void hystrix_error_percentage(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "hystrix") {
		calls(&r, 9, OK, KRETRY_DONE);
		calls(&r, 10, TRANSIENT, KRETRY_STOP_LIMIT);
		assert_closed(&r);
		r.now += 11 * SEC;
		calls(&r, 11, OK, KRETRY_DONE);
		calls(&r, 9, THROTTLED, KRETRY_STOP_LIMIT);
		assert_closed(&r);
		results(&r, 2, TRANSIENT);
		assert_open_for(&r, 5 * SEC, 5 * SEC);
		probe_alone(&r, TRANSIENT);
		assert_open_for(&r, 5 * SEC, 5 * SEC);
		probe_alone(&r, OK);
		assert_closed(&r);
		results(&r, 19, TRANSIENT);
		assert_closed(&r);
		results(&r, 1, TRANSIENT);
		assert_open_for(&r, 5 * SEC, 5 * SEC);
	}
}

/* A tenth of at least 100 in 30 s; 5 s; one decides. */
static void polly_failure_ratio(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "polly") {
		results(&r, 10, TRANSIENT);
		results(&r, 89, OK);
		assert_closed(&r);
		results(&r, 1, OK);
		assert_open_for(&r, 5 * SEC, 5 * SEC);
		probe_alone(&r, TRANSIENT);
		assert_open_for(&r, 5 * SEC, 5 * SEC);
		probe_alone(&r, OK);
		assert_closed(&r);
		results(&r, 99, TRANSIENT);
		assert_closed(&r);
		r.now += 31 * SEC;
		results(&r, 1, TRANSIENT);
		assert_closed(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linkerd_consecutive_failures),
		cmocka_unit_test(finagle_failure_accrual),
		cmocka_unit_test(envoy_consecutive_5xx),
		cmocka_unit_test(resilience4j_count_based_window),
		cmocka_unit_test(resilience4j_ten_permits_at_one_time),
		cmocka_unit_test(resilience4j_slow_calls),
		cmocka_unit_test(hystrix_error_percentage),
		cmocka_unit_test(polly_failure_ratio),
	};

	return run_group(tests);
}
