// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The presets' backoffs and budgets give the verdicts that the rules of their systems give. */
#include "replay.h"

#define OK		KRETRY_EVENT_OK
#define TRANSIENT	KRETRY_EVENT_TRANSIENT
#define THROTTLED	KRETRY_EVENT_THROTTLED
#define UNKNOWN		KRETRY_EVENT_UNKNOWN

static void every_preset_is_a_valid_policy(void **state)
{
	struct kretry *k;
	struct kretry_policy p;
	const char *name;
	unsigned int i;

	(void)state;
	assert_int_equal(kretry_open(&k, NULL, KRETRY_PROCESS_ONLY), 0);
	for (i = 0; (name = kretry_preset_name(i)); i++) {
		assert_int_equal(kretry_preset(name, &p), 0);
		assert_int_equal(kretry_policy_check(&p), 0);
		assert_int_equal(kretry_policy_create(k, &p), 0);
	}
	assert_int_equal(i, 13);
	assert_int_equal(kretry_preset("", &p), -ENOENT);
	assert_int_equal(kretry_preset("grpc ", &p), -ENOENT);
	kretry_close(k);
}

/* Three attempts; a retry takes 5 tokens of 500, after a timeout 10; success brings them back. */
static void aws_standard_quota(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "aws-standard") {
		assert_int_equal(begin(&r), KRETRY_GO);
		assert_retry(&r, TRANSIENT, 0, SEC);
		assert_tokens(&r, 495000);
		assert_retry(&r, THROTTLED, 0, 2 * SEC);
		assert_tokens(&r, 490000);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
		assert_tokens(&r, 490000);

		begin(&r);
		assert_retry(&r, TRANSIENT, 0, SEC);
		assert_int_equal(report(&r, OK), KRETRY_DONE);
		assert_tokens(&r, 490000);
		begin(&r);
		assert_retry(&r, UNKNOWN, 0, SEC);
		assert_tokens(&r, 480000);
		assert_int_equal(report(&r, OK), KRETRY_DONE);
		assert_tokens(&r, 490000);

		calls(&r, 1, OK, KRETRY_DONE);
		assert_tokens(&r, 491000);
		calls(&r, 49, UNKNOWN, KRETRY_RETRY);
		assert_tokens(&r, 1000);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
		calls(&r, 3, OK, KRETRY_DONE);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
		calls(&r, 1, OK, KRETRY_DONE);
		calls(&r, 1, TRANSIENT, KRETRY_RETRY);
		assert_tokens(&r, 0);
		calls(&r, 600, OK, KRETRY_DONE);
		assert_tokens(&r, 500000);
	}
}

/* The wait is x-amz-retry-after, but not below the own delay, and at most 5 s above it. */
static void aws_2026_costs_and_retry_after(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "aws-2026") {
		begin(&r);
		assert_retry(&r, TRANSIENT, 0, 50 * MS);
		assert_tokens(&r, 486000);
		assert_retry(&r, THROTTLED, 0, 2 * SEC);
		assert_tokens(&r, 481000);
		assert_int_equal(report(&r, OK), KRETRY_DONE);
		assert_tokens(&r, 486000);
		begin(&r);
		assert_retry(&r, UNKNOWN, 0, 50 * MS);
		assert_tokens(&r, 472000);

		begin(&r);
		assert_int_equal(report_hint(&r, THROTTLED, KRETRY_OP_HINT, 700 * MS),
				 KRETRY_RETRY);
		assert_true(r.op.delay_ns == drawn(&r, 700 * MS, SEC));
		begin(&r);
		assert_int_equal(report_hint(&r, THROTTLED, KRETRY_OP_HINT, 60 * SEC),
				 KRETRY_RETRY);
		assert_true(r.op.delay_ns == drawn(&r, 5 * SEC, 6 * SEC));
		assert_true(r.op.flags & KRETRY_OP_CLAMPED);
	}
}

/* Five attempts; each failure takes a token of 10, each success brings 0.1; above half, or not. */
static void grpc_throttling(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "grpc") {
		begin(&r);
		assert_retry(&r, TRANSIENT, 80 * MS, 120 * MS);
		assert_tokens(&r, 9000);
		assert_retry(&r, TRANSIENT, 160 * MS, 240 * MS);
		assert_retry(&r, TRANSIENT, 320 * MS, 480 * MS);
		assert_retry(&r, TRANSIENT, 640 * MS, 960 * MS);
		assert_tokens(&r, 6000);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
		assert_tokens(&r, 5000);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
		assert_tokens(&r, 4000);
		calls(&r, 20, OK, KRETRY_DONE);
		assert_tokens(&r, 6000);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
		assert_tokens(&r, 5000);
		calls(&r, 11, OK, KRETRY_DONE);
		calls(&r, 1, TRANSIENT, KRETRY_RETRY);
		assert_tokens(&r, 5100);
		calls(&r, 6, TRANSIENT, KRETRY_STOP_BUDGET);
		assert_tokens(&r, 0);
		calls(&r, 200, OK, KRETRY_DONE);
		assert_tokens(&r, 10000);
	}
}

static void grpc_pushback_is_exact_and_negative_stops(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "grpc") {
		begin(&r);
		assert_int_equal(report_hint(&r, TRANSIENT, KRETRY_OP_HINT, 37 * MS),
				 KRETRY_RETRY);
		assert_true(r.op.delay_ns == 37 * MS);
		assert_int_equal(report_hint(&r, TRANSIENT, KRETRY_OP_HINT, 0), KRETRY_RETRY);
		assert_true(r.op.delay_ns == 0);
		assert_int_equal(report_hint(&r, TRANSIENT, KRETRY_OP_NO_RETRY, 0),
				 KRETRY_STOP_HINT);
		assert_tokens(&r, 7000);
		begin(&r);
		assert_int_equal(report(&r, UNKNOWN), KRETRY_STOP_UNSAFE);
	}
}

/* @count failures, with a success now and then, so that no breaker opens. Returns the successes. */
static unsigned int fail_scattered(struct replay *r, unsigned int count, unsigned int in_a_row)
{
	unsigned int oks = 0;

	for (; count > in_a_row; count -= in_a_row, oks++) {
		calls(r, in_a_row, TRANSIENT, KRETRY_RETRY);
		calls(r, 1, OK, KRETRY_DONE);
	}
	calls(r, count, TRANSIENT, KRETRY_RETRY);
	return oks;
}

/* A fifth of the requests, and 10 a second; 100 at first. One retry each, after 25 to 50 ms. */
static void linkerd_budget(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "linkerd") {
		begin(&r);
		assert_retry(&r, TRANSIENT, 25 * MS, 50 * MS);
		assert_tokens(&r, 99000);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
		calls(&r, 1, OK, KRETRY_DONE);
		assert_tokens(&r, 99200);
		assert_int_equal(fail_scattered(&r, 102, 6), 16);
		assert_tokens(&r, 400);
		calls(&r, 1, OK, KRETRY_DONE);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
		assert_tokens(&r, 600);

		/* What traffic brought lapses in 10 s; what time brings stays, up to 100. */
		r.now += SEC;
		calls(&r, 2, OK, KRETRY_DONE);
		assert_tokens(&r, 11000);
		calls(&r, 1, TRANSIENT, KRETRY_RETRY);
		r.now += 20 * SEC;
		calls(&r, 1, OK, KRETRY_DONE);
		assert_tokens(&r, 100200);
		r.now += 3600 * SEC;
		calls(&r, 100, OK, KRETRY_DONE);
		assert_tokens(&r, 120000);
		r.now += 11 * SEC;
		calls(&r, 1, OK, KRETRY_DONE);
		assert_tokens(&r, 100200);
	}
}

/* A request deposits 0.2 when it is made; a retry takes 1, at once. */
static void finagle_budget(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "finagle") {
		r.policy.breaker = (struct kretry_breaker){ 0 };
		calls(&r, 10, OK, KRETRY_DONE);
		assert_tokens(&r, 102000);
		begin(&r);
		assert_retry(&r, TRANSIENT, 0, 0);
		assert_tokens(&r, 101200);
		report(&r, KRETRY_EVENT_BEGIN);
		assert_retry(&r, TRANSIENT, 0, 0);
		assert_tokens(&r, 100200);
		begin(&r);
		assert_int_equal(report(&r, UNKNOWN), KRETRY_STOP_UNSAFE);
		calls(&r, 125, TRANSIENT, KRETRY_RETRY);
		assert_tokens(&r, 400);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
		r.now += SEC;
		calls(&r, 13, TRANSIENT, KRETRY_RETRY);
		assert_tokens(&r, 200);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
	}
}

static void envoy_backoff_and_budget(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "envoy") {
		begin(&r);
		assert_tokens(&r, 3200);
		assert_retry(&r, TRANSIENT, 0, 25 * MS);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
		calls(&r, 1, OK, KRETRY_DONE);
		calls(&r, 2, TRANSIENT, KRETRY_RETRY);
		assert_tokens(&r, 800);
		calls(&r, 1, OK, KRETRY_DONE);
		calls(&r, 1, TRANSIENT, KRETRY_RETRY);
		calls(&r, 1, TRANSIENT, KRETRY_STOP_BUDGET);
		assert_tokens(&r, 400);
	}
}

static void resilience4j_backoff(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "resilience4j") {
		begin(&r);
		assert_retry(&r, TRANSIENT, 250 * MS, 750 * MS);
		assert_retry(&r, UNKNOWN, 375 * MS, 1125 * MS);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
	}
}

/* Twice the doubled 2 s at most, and hardly anything at least: a delay of 0 is never drawn. */
static void polly_backoff(void **state)
{
	struct replay r;

	(void)state;
	both_draws(&r, "polly") {
		begin(&r);
		assert_retry(&r, TRANSIENT, 1, 4 * SEC);
		assert_retry(&r, TRANSIENT, 1, 8 * SEC);
		assert_retry(&r, TRANSIENT, 1, 16 * SEC);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
	}
}

static void curl_doubles_from_1_s_and_obeys_retry_after(void **state)
{
	struct replay r;
	u64 delay;

	(void)state;
	both_draws(&r, "curl") {
		begin(&r);
		for (delay = SEC; delay <= 64 * SEC; delay *= 2)
			assert_retry(&r, TRANSIENT, delay, delay);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
		assert_true(kretry_ceiling(&r.policy.backoff, SEC, 9) == 512 * SEC);
		assert_true(kretry_ceiling(&r.policy.backoff, SEC, 10) == 600 * SEC);
		begin(&r);
		assert_int_equal(report_hint(&r, THROTTLED, KRETRY_OP_HINT, 7200 * SEC),
				 KRETRY_RETRY);
		assert_true(r.op.delay_ns == 7200 * SEC);
	}
}

/* Five starts in 10 s, the first included, every 100 ms; slower than that for ever. */
static void systemd_start_limit(void **state)
{
	struct replay r;
	unsigned int i;

	(void)state;
	both_draws(&r, "systemd") {
		begin(&r);
		for (i = 0; i < 4; i++) {
			assert_retry(&r, TRANSIENT, 100 * MS, 100 * MS);
			r.now += 100 * MS;
		}
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_BUDGET);
		r.now += 10 * SEC;
		begin(&r);
		for (i = 0; i < 1000; i++) {
			assert_retry(&r, TRANSIENT, 100 * MS, 100 * MS);
			r.now += 2 * SEC;
		}
	}
}

static void kubernetes_doubles_from_5_ms_to_1000_s(void **state)
{
	struct replay r;
	u64 delay;

	(void)state;
	both_draws(&r, "kubernetes") {
		begin(&r);
		for (delay = 5 * MS; delay < 1000 * SEC; delay *= 2)
			assert_retry(&r, TRANSIENT, delay, delay);
		assert_int_equal(r.op.attempt, 18);
		assert_retry(&r, TRANSIENT, 1000 * SEC, 1000 * SEC);
		assert_retry(&r, TRANSIENT, 1000 * SEC, 1000 * SEC);
		assert_int_equal(report(&r, OK), KRETRY_DONE);
		begin(&r);
		assert_retry(&r, TRANSIENT, 5 * MS, 5 * MS);
	}
}

/* After collision n a multiple of the slot time below 2^min(n, 10); the 16th gives up. */
static void ethernet_truncated_binary_exponential(void **state)
{
	struct replay r;
	unsigned int n;

	(void)state;
	both_draws(&r, "ethernet") {
		begin(&r);
		for (n = 1; n <= 15; n++)
			assert_retry(&r, TRANSIENT, 0, ((1U << (n < 10 ? n : 10)) - 1) * 51200ULL);
		assert_int_equal(report(&r, TRANSIENT), KRETRY_STOP_LIMIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_preset_is_a_valid_policy),
		cmocka_unit_test(aws_standard_quota),
		cmocka_unit_test(aws_2026_costs_and_retry_after),
		cmocka_unit_test(grpc_throttling),
		cmocka_unit_test(grpc_pushback_is_exact_and_negative_stops),
		cmocka_unit_test(linkerd_budget),
		cmocka_unit_test(finagle_budget),
		cmocka_unit_test(envoy_backoff_and_budget),
		cmocka_unit_test(resilience4j_backoff),
		cmocka_unit_test(polly_backoff),
		cmocka_unit_test(curl_doubles_from_1_s_and_obeys_retry_after),
		cmocka_unit_test(systemd_start_limit),
		cmocka_unit_test(kubernetes_doubles_from_5_ms_to_1000_s),
		cmocka_unit_test(ethernet_truncated_binary_exponential),
	};

	return run_group(tests);
}
