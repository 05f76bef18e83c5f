// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Budgets, breakers and keys where the process decides. */
#include "library.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* -------- probes -------- */

static void half_open_admits_one_probe_until_it_reports(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, breaker_of(20 * MS, 3600 * SEC));
	struct kretry_op probe, other;

	(void)state;
	open_breaker(k, id);
	other = step(k, id, KRETRY_EVENT_BEGIN);
	assert_int_equal(other.verdict, KRETRY_STOP_OPEN);
	assert_true(other.deadline_ns > kretry_now(CLOCK_MONOTONIC));
	pause_ns(25 * MS);
	probe = step(k, id, KRETRY_EVENT_BEGIN);
	assert_int_equal(probe.verdict, KRETRY_GO);
	assert_true(probe.flags & KRETRY_OP_PROBE);
	assert_int_equal(step(k, id, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	assert_int_equal(stat_of(k, id, 1).leases, 1);
	assert_int_equal(kretry_policy_close(k, id), -EBUSY);
	assert_int_equal(continue_op(k, &probe, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(stat_of(k, id, 1).state, KRETRY_CLOSED);
	assert_int_equal(stat_of(k, id, 1).leases, 0);
	assert_int_equal(step(k, id, KRETRY_EVENT_BEGIN).verdict, KRETRY_GO);
	assert_int_equal(kretry_policy_close(k, id), 0);
	kretry_close(k);
}

static void failed_probe_reopens(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, breaker_of(20 * MS, SEC));
	struct kretry_op probe;

	(void)state;
	open_breaker(k, id);
	pause_ns(25 * MS);
	probe = step(k, id, KRETRY_EVENT_BEGIN);
	assert_int_equal(continue_op(k, &probe, KRETRY_EVENT_TRANSIENT), KRETRY_STOP_OPEN);
	assert_int_equal(stat_of(k, id, 1).state, KRETRY_OPEN);
	assert_int_equal(count_of(k, id).opened, 2);
	assert_int_equal(count_of(k, id).transitions, 3);
	kretry_close(k);
}

static void cancelled_probe_makes_room_for_another(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, breaker_of(20 * MS, 3600 * SEC));
	struct kretry_op probe;

	(void)state;
	open_breaker(k, id);
	pause_ns(25 * MS);
	probe = step(k, id, KRETRY_EVENT_BEGIN);
	assert_int_equal(continue_op(k, &probe, KRETRY_EVENT_CANCELLED), KRETRY_DONE);
	assert_int_equal(stat_of(k, id, 1).state, KRETRY_HALF_OPEN);
	assert_int_equal(step(k, id, KRETRY_EVENT_BEGIN).verdict, KRETRY_GO);
	assert_int_equal(step(k, id, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	kretry_close(k);
}

/* The time of its loss is when it ran out, not when somebody looked: open again, and over. */
static void silent_probe_is_lost_at_its_timeout(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, breaker_of(20 * MS, 30 * MS));
	struct kretry_op late, next;
	struct kretry_stat stat;

	(void)state;
	open_breaker(k, id);
	pause_ns(25 * MS);
	late = step(k, id, KRETRY_EVENT_BEGIN);
	pause_ns(35 * MS);
	stat = stat_of(k, id, 1);
	assert_int_equal(count_of(k, id).probes_lost, 1);
	assert_int_equal(count_of(k, id).opened, 2);
	assert_true(stat.state == KRETRY_HALF_OPEN ||
		    stat.half_open_ns == late.deadline_ns + 50 * MS);
	pause_ns(20 * MS);
	next = step(k, id, KRETRY_EVENT_BEGIN);
	assert_int_equal(next.verdict, KRETRY_GO);
	assert_int_equal(continue_op(k, &late, KRETRY_EVENT_OK), KRETRY_DONE);
	assert_int_equal(stat_of(k, id, 1).state, KRETRY_HALF_OPEN);
	assert_int_equal(stat_of(k, id, 1).leases, 1);
	kretry_close(k);
}

static void probe_of_a_closed_handle_comes_back(void **state)
{
	struct kretry *a = open_process(), *b = open_process();
	struct kretry_policy p = name_policy(breaker_of(20 * MS, 3600 * SEC), "shop");
	u32 id_a = create(a, p), id_b = create(b, p);

	(void)state;
	open_breaker(a, id_a);
	pause_ns(25 * MS);
	assert_int_equal(step(a, id_a, KRETRY_EVENT_BEGIN).verdict, KRETRY_GO);
	assert_int_equal(step(b, id_b, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	kretry_close(a);
	assert_int_equal(step(b, id_b, KRETRY_EVENT_BEGIN).verdict, KRETRY_GO);
	assert_int_equal(kretry_shutdown(b), 0);
	kretry_close(b);
}

/* -------- threads and processes -------- */

struct racer {
	struct kretry *k;
	u32 policy;
	unsigned int wins;
};

static void *race_for_tokens(void *arg)
{
	struct racer *racer = arg;
	unsigned int i;

	for (i = 0; i < 5000; i++)
		racer->wins += step(racer->k, racer->policy, KRETRY_EVENT_TRANSIENT).verdict ==
			       KRETRY_RETRY;
	return NULL;
}

static void *race_for_probes(void *arg)
{
	struct racer *racer = arg;
	unsigned int i;

	for (i = 0; i < 5000; i++)
		racer->wins += step(racer->k, racer->policy, KRETRY_EVENT_BEGIN).verdict ==
			       KRETRY_GO;
	return NULL;
}

static unsigned int race(struct kretry *k, u32 policy, void *(*run)(void *))
{
	struct racer racers[4];
	pthread_t threads[4];
	unsigned int i, wins = 0;

	for (i = 0; i < 4; i++) {
		racers[i] = (struct racer){ .k = k, .policy = policy };
		assert_int_equal(pthread_create(&threads[i], NULL, run, &racers[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		wins += racers[i].wins;
	}
	return wins;
}

static void four_threads_get_exactly_the_tokens(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, budget_of(7777));

	(void)state;
	assert_int_equal(race(k, id, race_for_tokens), 7777);
	assert_true(stat_of(k, id, 1).balance_utok == 0);
	assert_true(count_of(k, id).charged_utok == 7777 * KRETRY_UTOK);
	assert_true(count_of(k, id).retry == 7777);
	assert_true(count_of(k, id).stops[KRETRY_STOP_BUDGET - KRETRY_STOP_PERMANENT] ==
		    20000 - 7777);
	kretry_close(k);
}

static void four_threads_get_exactly_the_probes(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = breaker_of(MS, 3600 * SEC);
	u32 id;

	(void)state;
	p.breaker.probes = 3;
	id = create(k, p);
	open_breaker(k, id);
	pause_ns(2 * MS);
	assert_int_equal(race(k, id, race_for_probes), 3);
	kretry_close(k);
}

static void *step_until(void *arg)
{
	struct racer *racer = arg;

	while (!__atomic_load_n(&racer->wins, __ATOMIC_RELAXED))
		step(racer->k, racer->policy, KRETRY_EVENT_TRANSIENT);
	return NULL;
}

/* The child has what there was at the fork, and its own from then on. */
static void child_of_a_busy_process_has_a_copy(void **state)
{
	struct racer racer = { .k = open_process() };
	u32 id = create(racer.k, budget_of(2));
	pthread_t thread;
	unsigned int i;
	int status;
	pid_t pid;

	(void)state;
	racer.policy = create(racer.k, budget_of(1));
	assert_int_equal(step(racer.k, id, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	assert_int_equal(pthread_create(&thread, NULL, step_until, &racer), 0);
	for (i = 0; i < 100; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			alarm(20);
			_exit(step(racer.k, id, KRETRY_EVENT_TRANSIENT).verdict != KRETRY_RETRY ||
			      step(racer.k, id, KRETRY_EVENT_TRANSIENT).verdict !=
			      KRETRY_STOP_BUDGET);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	__atomic_store_n(&racer.wins, 1, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(step(racer.k, id, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_RETRY);
	kretry_close(racer.k);
}

/* -------- keys -------- */

static void keys_have_a_budget_each(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, budget_of(1));
	u64 key;

	(void)state;
	for (key = 0; key < 100; key++)
		assert_int_equal(step_key(k, id, key, KRETRY_EVENT_TRANSIENT).verdict,
				 KRETRY_RETRY);
	for (key = 0; key < 100; key++)
		assert_int_equal(step_key(k, id, key, KRETRY_EVENT_TRANSIENT).verdict,
				 KRETRY_STOP_BUDGET);
	assert_int_equal(count_of(k, id).keys, 100);
	kretry_close(k);
}

static void keys_beyond_the_bound_share_one_state(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, budget_of(1));
	struct kretry_op op;
	u64 key;

	(void)state;
	for (key = 0; key < PROCESS_MAX_KEYS; key++) {
		op = step_key(k, id, key, KRETRY_EVENT_TRANSIENT);
		assert_int_equal(op.verdict, KRETRY_RETRY);
		assert_false(op.flags & KRETRY_OP_SHARED_KEY);
	}
	op = step_key(k, id, key, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(op.verdict, KRETRY_RETRY);
	assert_true(op.flags & KRETRY_OP_SHARED_KEY);
	op = step_key(k, id, key + 1, KRETRY_EVENT_TRANSIENT);
	assert_int_equal(op.verdict, KRETRY_STOP_BUDGET);
	assert_true(op.flags & KRETRY_OP_SHARED_KEY);
	assert_int_equal(count_of(k, id).evicted, 0);
	kretry_close(k);
}

static void idle_key_makes_room_for_a_new_one(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, budget_of(1));
	struct kretry_op op;
	u64 key;

	(void)state;
	for (key = 0; key < PROCESS_MAX_KEYS; key++)
		step_key(k, id, key, KRETRY_EVENT_BEGIN);
	step_key(k, id, 7, KRETRY_EVENT_TRANSIENT);
	for (; key < 3 * PROCESS_MAX_KEYS; key++)
		op = step_key(k, id, key, KRETRY_EVENT_BEGIN);
	assert_false(op.flags & KRETRY_OP_SHARED_KEY);
	assert_int_equal(count_of(k, id).keys, PROCESS_MAX_KEYS);
	assert_true(count_of(k, id).evicted >= PROCESS_MAX_KEYS);
	assert_int_equal(step_key(k, id, 7, KRETRY_EVENT_TRANSIENT).verdict, KRETRY_STOP_BUDGET);
	kretry_close(k);
}

static void canonical_key_is_that_of_other_programs(void **state)
{
	(void)state;
	assert_true(kretry_key("https://api.example.com:443") == 0xe8c663403a33d074ULL);
	assert_true(kretry_key("HTTPS://API.Example.COM:443") == 0xe8c663403a33d074ULL);
	assert_true(kretry_key("tcp://[::1]:5432") == 0x931ae11ace14d625ULL);
	assert_true(kretry_key("") == 0x141cfc9842c4b0e3ULL);
}

/* -------- looking and operating -------- */

static void stat_counts_events_and_verdicts(void **state)
{
	struct kretry *k = open_process();
	struct kretry_policy p = budget_of(10);
	struct kretry_stat stat;
	struct kretry_op op;

	(void)state;
	p.budget.flags = KRETRY_BUDGET_REFUND_LAST;
	op = step(k, create(k, p), KRETRY_EVENT_BEGIN);
	continue_op(k, &op, KRETRY_EVENT_TRANSIENT);
	continue_op(k, &op, KRETRY_EVENT_TRANSIENT);
	continue_op(k, &op, KRETRY_EVENT_OK);
	continue_op(k, &op, KRETRY_EVENT_PERMANENT);
	stat = (struct kretry_stat){ .policy = op.policy };
	assert_int_equal(kretry_stat(k, &stat), 0);
	assert_int_equal(stat.size, sizeof(stat));
	assert_true(stat.events[KRETRY_EVENT_BEGIN] == 1 && stat.events[KRETRY_EVENT_OK] == 1 &&
		    stat.events[KRETRY_EVENT_TRANSIENT] == 2 &&
		    stat.events[KRETRY_EVENT_PERMANENT] == 1);
	assert_true(stat.go == 1 && stat.retry == 2 && stat.done == 1 && stat.stops[0] == 1);
	assert_true(stat.charged_utok == 2 * KRETRY_UTOK && stat.refunded_utok == KRETRY_UTOK);
	assert_true(stat.keys == 1 && stat.balance_utok == 0);
	assert_true(stat_of(k, op.policy, 1).keys == 1 && stat_of(k, op.policy, 1).go == 0);
	assert_true(stat_of(k, op.policy, 2).keys == 0);
	assert_true(stat_of(k, op.policy, 1).balance_utok == 9 * KRETRY_UTOK);
	assert_true(stat_of(k, op.policy, 2).balance_utok == 10 * KRETRY_UTOK);
	stat.key = 1;
	stat.flags = 0;
	assert_int_equal(kretry_stat(k, &stat), -EINVAL);
	stat.flags = 2;
	assert_int_equal(kretry_stat(k, &stat), -EINVAL);
	stat = (struct kretry_stat){ .policy = op.policy, .reserved = 1 };
	assert_int_equal(kretry_stat(k, &stat), -EINVAL);
	stat = (struct kretry_stat){ .policy = op.policy + 1 };
	assert_int_equal(kretry_stat(k, &stat), -ENOENT);
	kretry_close(k);
}

static void forced_open_and_closed_decide_for_one_key_or_all(void **state)
{
	struct kretry *k = open_process();
	struct kretry_force force = { .policy = create(k, breaker_of(SEC, SEC)),
				      .flags = KRETRY_SCOPE_KEY, .key = 1,
				      .mode = KRETRY_MODE_FORCED_OPEN };
	u32 id = force.policy;

	(void)state;
	assert_int_equal(kretry_force(k, &force), 0);
	assert_int_equal(step(k, id, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	assert_int_equal(step_key(k, id, 2, KRETRY_EVENT_BEGIN).verdict, KRETRY_GO);
	assert_int_equal(stat_of(k, id, 1).mode, KRETRY_MODE_FORCED_OPEN);
	force.flags = 0;
	force.key = 0;
	assert_int_equal(kretry_force(k, &force), 0);
	assert_int_equal(step_key(k, id, 2, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	assert_int_equal(step_key(k, id, 3, KRETRY_EVENT_BEGIN).verdict, KRETRY_STOP_OPEN);
	force.mode = KRETRY_MODE_FORCED_CLOSED;
	assert_int_equal(kretry_force(k, &force), 0);
	open_breaker(k, id);
	assert_int_equal(step(k, id, KRETRY_EVENT_BEGIN).verdict, KRETRY_GO);
	force.mode = 4;
	assert_int_equal(kretry_force(k, &force), -EINVAL);
	force.mode = 0;
	force.policy = create(k, budget_of(1));
	assert_int_equal(kretry_force(k, &force), -EINVAL);
	kretry_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_open_admits_one_probe_until_it_reports),
		cmocka_unit_test(failed_probe_reopens),
		cmocka_unit_test(cancelled_probe_makes_room_for_another),
		cmocka_unit_test(silent_probe_is_lost_at_its_timeout),
		cmocka_unit_test(probe_of_a_closed_handle_comes_back),
		cmocka_unit_test(four_threads_get_exactly_the_tokens),
		cmocka_unit_test(four_threads_get_exactly_the_probes),
		cmocka_unit_test(child_of_a_busy_process_has_a_copy),
		cmocka_unit_test(keys_have_a_budget_each),
		cmocka_unit_test(keys_beyond_the_bound_share_one_state),
		cmocka_unit_test(idle_key_makes_room_for_a_new_one),
		cmocka_unit_test(canonical_key_is_that_of_other_programs),
		cmocka_unit_test(stat_counts_events_and_verdicts),
		cmocka_unit_test(forced_open_and_closed_decide_for_one_key_or_all),
	};

	return run_group(tests);
}
