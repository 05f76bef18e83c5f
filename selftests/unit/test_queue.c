// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The queue of a handle where the process decides: when ops are delivered, to whom, how often. */
#include "queued.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY	2000

/* -------- delivery -------- */

static void retries_are_read_once_in_order_and_never_early(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_FULL, 100 * MS, SEC);
	struct kretry_op *ops = calloc(MANY, sizeof(*ops));
	u64 *deadlines = calloc(MANY, sizeof(*deadlines));
	struct kretry *k = open_process();
	u32 policy = create(k, p), i, done;
	u64 last = 0, now;
	int count;

	(void)state;
	for (i = 0; i < MANY; i++)
		deadlines[i] = enqueue(k, policy, i).deadline_ns;
	assert_int_equal(count_of(k, policy).queued, MANY);
	for (done = 0; done < MANY; done += (u32)count) {
		assert_true(is_readable(k, 10000));
		count = kretry_queue_read(k, ops, 64);
		now = kretry_now(CLOCK_MONOTONIC);
		assert_in_range(count, 0, 64);
		for (i = 0; i < (u32)count; i++) {
			assert_in_range(ops[i].user_data, 0, MANY - 1);
			assert_int_equal(ops[i].verdict, KRETRY_GO);
			assert_int_equal(ops[i].flags, KRETRY_OP_QUEUE);
			assert_int_equal(ops[i].attempt, 1);
			assert_true(deadlines[ops[i].user_data] >= last);
			last = deadlines[ops[i].user_data];
			assert_true(last && last <= now && ops[i].deadline_ns <= now);
			deadlines[ops[i].user_data] = 0;
		}
	}
	assert_int_equal(count_of(k, policy).queued, 0);
	assert_false(is_readable(k, 0));
	kretry_close(k);
	free(deadlines);
	free(ops);
}

/* Takes two in three out of the middle, in an order of its own. */
static void cancelled_between_others_leaves_the_order(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_FULL, 200 * MS, SEC);
	struct kretry_op *ops = calloc(MANY, sizeof(*ops)), op;
	struct kretry *k = open_process();
	u32 policy = create(k, p), i, left = 0;

	(void)state;
	for (i = 0; i < MANY; i++)
		ops[i] = enqueue(k, policy, i);
	for (i = 0; i < MANY; i++) {
		if (i * 7919 % MANY % 3 &&
		    !kretry_queue_cancel(k, i * 7919 % MANY, &op))
			ops[i * 7919 % MANY].deadline_ns = 0;
		else
			left++;
	}
	for (i = 0; i < left; i++) {
		u64 last = i ? op.user_data : 0;

		op = read_one(k);
		assert_true(ops[op.user_data].deadline_ns);
		assert_true(!i || ops[op.user_data].deadline_ns >= ops[last].deadline_ns);
	}
	assert_empty(k);
	kretry_close(k);
	free(ops);
}

static void clocks_of_two_kinds_are_both_delivered(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 30 * MS, SEC);
	struct kretry *k = open_process();
	u32 monotonic = create(k, p), boottime;
	struct kretry_op op;

	(void)state;
	p.clockid = CLOCK_BOOTTIME;
	p.backoff.base_ns = 10 * MS;
	boottime = create(k, p);
	enqueue(k, monotonic, 1);
	op = enqueue(k, boottime, 2);
	assert_int_equal(read_one(k).user_data, 2);
	assert_true(kretry_now(CLOCK_BOOTTIME) >= op.deadline_ns);
	assert_int_equal(read_one(k).user_data, 1);
	kretry_close(k);
}

static void begin_to_start_now_is_not_queued_a_paced_one_is(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, MS, SEC);
	struct kretry *k = open_process();
	struct kretry_op op, second;

	(void)state;
	p.flags = KRETRY_POLICY_PACE_ALL;
	p.pacing.pace_ns = 30 * MS;
	p.pacing.horizon_ns = SEC;
	op = queued_op(create(k, p), 1);
	op.event = KRETRY_EVENT_BEGIN;
	second = op;
	assert_int_equal(kretry_step(k, &op), 0);
	assert_int_equal(op.verdict, KRETRY_GO);
	assert_int_equal(op.flags, KRETRY_OP_QUEUE);
	/* The same user_data: the first one is not there. */
	assert_int_equal(kretry_step(k, &second), 0);
	assert_int_equal(second.verdict, KRETRY_GO);
	assert_int_equal(second.flags, KRETRY_OP_QUEUE | KRETRY_OP_QUEUED);
	assert_true(second.deadline_ns == op.deadline_ns + 30 * MS);
	op = read_one(k);
	assert_true(op.deadline_ns == second.deadline_ns);
	assert_true(kretry_now(CLOCK_MONOTONIC) >= op.deadline_ns);
	assert_int_equal(op.verdict, KRETRY_GO);
	kretry_close(k);
}

/* All are due at the same time: each takes a slot then, and comes when that has come. */
static void paced_retries_wait_for_their_slots(void **state)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 5 * MS, SEC);
	struct kretry *k = open_process();
	struct kretry_op ops[5];
	u32 policy, i;
	u64 begin = kretry_now(CLOCK_MONOTONIC);

	(void)state;
	p.pacing.pace_ns = 20 * MS;
	p.pacing.horizon_ns = SEC;
	policy = create(k, p);
	for (i = 0; i < 5; i++)
		enqueue(k, policy, i);
	read_all(k, ops, 5);
	assert_true(kretry_now(CLOCK_MONOTONIC) >= begin + 85 * MS);
	for (i = 0; i < 5; i++) {
		assert_int_equal(ops[i].verdict, KRETRY_GO);
		assert_true(!i || ops[i].deadline_ns >= ops[i - 1].deadline_ns + 20 * MS);
	}
	kretry_close(k);
}

/* -------- what is refused at once -------- */

static void user_data_in_use_eexist_and_op_unchanged(void **state)
{
	struct kretry *k = open_process();
	u32 policy = create(k, policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 3600 * SEC, 3600 * SEC));
	struct kretry_op op = queued_op(policy, 7), was = op;

	(void)state;
	enqueue(k, policy, 7);
	assert_int_equal(kretry_step(k, &op), -EEXIST);
	assert_memory_equal(&op, &was, sizeof(op));
	assert_int_equal(kretry_step_batch(k, &op, 1), 1);
	assert_int_equal(op.verdict, KRETRY_ERROR);
	assert_int_equal(KRETRY_OP_ERRNO(op.flags), EEXIST);
	op = was;
	assert_int_equal(kretry_queue_cancel(k, 7, &was), 0);
	assert_int_equal(kretry_step(k, &op), 0);
	/* What ends an op needs no place. */
	op = queued_op(policy, 7);
	op.event = KRETRY_EVENT_OK;
	assert_int_equal(kretry_step(k, &op), 0);
	assert_int_equal(op.verdict, KRETRY_DONE);
	kretry_close(k);
}

static void full_queue_enobufs(void **state)
{
	struct kretry *k = open_process();
	u32 policy = create(k, policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 3600 * SEC, 3600 * SEC));
	struct kretry_op op = queued_op(policy, PROCESS_MAX_QUEUED), was = op;
	struct kretry_info info;
	u32 i;

	(void)state;
	assert_int_equal(kretry_info(k, &info), 0);
	assert_int_equal(info.max_queued, PROCESS_MAX_QUEUED);
	assert_true(info.features & KRETRY_FEATURE_QUEUE);
	for (i = 0; i < PROCESS_MAX_QUEUED; i++)
		enqueue(k, policy, i);
	assert_int_equal(kretry_step(k, &op), -ENOBUFS);
	assert_memory_equal(&op, &was, sizeof(op));
	assert_int_equal(kretry_queue_cancel(k, 77, &was), 0);
	assert_int_equal(kretry_step(k, &op), 0);
	kretry_close(k);
}

static void policy_with_queued_ops_ebusy(void **state)
{
	struct kretry *k = open_process();
	u32 policy = create(k, policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 3600 * SEC, 3600 * SEC));
	struct kretry_op op;

	(void)state;
	enqueue(k, policy, 1);
	assert_int_equal(kretry_policy_close(k, policy), -EBUSY);
	assert_int_equal(kretry_queue_cancel(k, 1, &op), 0);
	assert_int_equal(kretry_policy_close(k, policy), 0);
	kretry_close(k);
}

/* -------- processes and threads -------- */

static int child_of_fork(struct kretry *k, u32 policy)
{
	struct kretry_op op = queued_op(policy, 1);
	struct pollfd pfd = { .fd = kretry_queue_fd(k), .events = POLLIN };

	/* The parent's is not here, so its user_data is free, and nothing is due. */
	if (kretry_queue_read(k, &op, 1) || kretry_step(k, &op) || op.verdict != KRETRY_RETRY)
		return 1;
	if (poll(&pfd, 1, 10000) != 1 || kretry_queue_read(k, &op, 1) != 1)
		return 2;
	return op.verdict == KRETRY_GO && !kretry_queue_read(k, &op, 1) ? 0 : 3;
}

static void fork_leaves_the_queue_to_the_parent(void **state)
{
	struct kretry *k = open_process();
	u32 policy = create(k, policy_of(KRETRY_FIXED, KRETRY_JITTER_NONE, 50 * MS, SEC));
	int status;
	pid_t pid;

	(void)state;
	enqueue(k, policy, 1);
	pause_ns(60 * MS);
	pid = fork();
	if (!pid)
		_exit(child_of_fork(k, policy));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_readable(k, 0));
	assert_int_equal(read_one(k).user_data, 1);
	assert_empty(k);
	kretry_close(k);
}

static struct {
	struct kretry *k;
	u32 policy;
	u32 got[4 * MANY];
	u32 done;
} shared;

static void *queue_many(void *arg)
{
	u64 first = (uintptr_t)arg * MANY, i;

	for (i = 0; i < MANY; i++)
		enqueue(shared.k, shared.policy, first + i);
	return NULL;
}

static void *read_many(void *arg)
{
	struct kretry_op ops[8];
	int count, i;

	(void)arg;
	while (__atomic_load_n(&shared.done, __ATOMIC_RELAXED) < 4 * MANY) {
		is_readable(shared.k, 10);
		count = kretry_queue_read(shared.k, ops, 8);
		for (i = 0; i < count; i++)
			__atomic_add_fetch(&shared.got[ops[i].user_data], 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&shared.done, (u32)count, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void four_threads_queue_and_two_read_each_op_once(void **state)
{
	pthread_t threads[6];
	unsigned int i;

	(void)state;
	memset(&shared, 0, sizeof(shared));
	shared.k = open_process();
	shared.policy = create(shared.k, policy_of(KRETRY_FIXED, KRETRY_JITTER_FULL, MS, SEC));
	for (i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i < 4 ? queue_many : read_many,
						(void *)(uintptr_t)i), 0);
	for (i = 0; i < 6; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (i = 0; i < 4 * MANY; i++)
		assert_int_equal(shared.got[i], 1);
	assert_empty(shared.k);
	kretry_close(shared.k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retries_are_read_once_in_order_and_never_early),
		cmocka_unit_test(cancelled_between_others_leaves_the_order),
		cmocka_unit_test(clocks_of_two_kinds_are_both_delivered),
		cmocka_unit_test(begin_to_start_now_is_not_queued_a_paced_one_is),
		cmocka_unit_test(paced_retries_wait_for_their_slots),
		cmocka_unit_test(user_data_in_use_eexist_and_op_unchanged),
		cmocka_unit_test(full_queue_enobufs),
		cmocka_unit_test(policy_with_queued_ops_ebusy),
		cmocka_unit_test(fork_leaves_the_queue_to_the_parent),
		cmocka_unit_test(four_threads_queue_and_two_read_each_op_once),
	};

	return run_group(tests);
}
