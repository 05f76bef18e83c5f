// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The library's decisions: the same as the decision code's, also where the module fails. */
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "internal.h"

static struct kretry *open_process(void)
{
	struct kretry *k;

	assert_int_equal(kretry_open(&k, NULL, KRETRY_PROCESS_ONLY), 0);
	return k;
}

static struct kretry *open_module(void)
{
	struct kretry *k;

	memset(&device, 0, sizeof(device));
	device.abi_version = KRETRY_ABI_VERSION;
	assert_int_equal(kretry_open(&k, DEVICE_PATH, KRETRY_MODULE_ONLY), 0);
	return k;
}

static u32 create(struct kretry *k, u8 jitter, u64 base, u32 max_retries)
{
	struct kretry_policy p = policy_of(KRETRY_FIXED, jitter, base, base);

	p.max_retries = max_retries;
	assert_int_equal(kretry_policy_create(k, &p), 0);
	return p.id;
}

static struct kretry_op failure_of(u32 policy)
{
	return (struct kretry_op){ .policy = policy, .event = KRETRY_EVENT_TRANSIENT };
}

/* The decision taken again, at the time that the library must have seen. */
static void assert_decided(const struct kretry_policy *p, struct kretry_op was,
			   const struct kretry_op *op, u64 before)
{
	u64 now = op->verdict == KRETRY_RETRY ? op->deadline_ns - op->delay_ns :
		  op->verdict == KRETRY_GO ? op->deadline_ns : before;

	assert_true(now >= before && now <= kretry_now((clockid_t)p->clockid));
	assert_int_equal(kretry_decide(p, &was, now, 0), 0);
	assert_memory_equal(op, &was, sizeof(was));
}

static void step_every_event_equals_decision_code(void **state)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct kretry *k = open_process();
	struct kretry_policy p;
	struct kretry_op op, was;
	unsigned int i, n;
	u64 before;
	u8 event;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		p = policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_NONE, MS, SEC);
		p.clockid = (u32)clocks[i];
		p.max_retries = 3;
		assert_int_equal(kretry_policy_create(k, &p), 0);
		for (event = KRETRY_EVENT_BEGIN; event <= KRETRY_EVENT_PERMANENT; event++) {
			op = (struct kretry_op){ .policy = p.id, .key = 9, .user_data = 8 };
			for (n = 0; n < 5; n++) {
				op.event = event;
				was = op;
				before = kretry_now(clocks[i]);
				assert_int_equal(kretry_step(k, &op), 0);
				if (op.verdict == KRETRY_RETRY || op.verdict == KRETRY_GO)
					assert_decided(&p, was, &op, before);
			}
		}
	}
	kretry_close(k);
}

static void step_error_leaves_op_unchanged(void **state)
{
	struct kretry *k = open_process();
	struct kretry_op op = failure_of(create(k, KRETRY_JITTER_FULL, SEC, 3)), was;

	(void)state;
	op.flags = 0x80;
	was = op;
	assert_int_equal(kretry_step(k, &op), -EINVAL);
	assert_memory_equal(&op, &was, sizeof(op));
	op.flags = 0;
	op.event = KRETRY_EVENT_NONE;
	was = op;
	assert_int_equal(kretry_step(k, &op), -EINVAL);
	op.policy++;
	was = op;
	assert_int_equal(kretry_step(k, &op), -ENOENT);
	assert_memory_equal(&op, &was, sizeof(op));
	kretry_close(k);
}

/* 36 draws from 10^18 values: two are equal once in 10^15 runs. */
static void step_forked_children_draw_differently(void **state)
{
	struct kretry *k = open_process();
	struct kretry_op op = failure_of(create(k, KRETRY_JITTER_FULL, 1000000000 * SEC, 3));
	u64 delays[36];
	unsigned int i, j, n;
	int pipes[2], status;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	for (n = 0; n < 9; n++) {
		if (n && fork())
			continue;
		for (i = 0; i < 4; i++) {
			struct kretry_op own = op;

			if (kretry_step(k, &own) || write(pipes[1], &own.delay_ns, 8) != 8)
				_exit(1);
		}
		if (n)
			_exit(0);
	}
	for (n = 1; n < 9; n++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (i = 0; i < 36; i++) {
		assert_int_equal(read(pipes[0], &delays[i], 8), 8);
		for (j = 0; j < i; j++)
			assert_true(delays[i] != delays[j]);
	}
	close(pipes[0]);
	close(pipes[1]);
	kretry_close(k);
}

static void step_batch_one_bad_op_others_done(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, KRETRY_JITTER_NONE, SEC, 3);
	struct kretry_op ops[200], was;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		ops[i] = failure_of(id);
		ops[i].flags = KRETRY_OP_IDEMPOTENT;
		ops[i].user_data = i;
	}
	ops[70].event = 99;
	ops[199].policy = id + 1;
	was = ops[70];
	assert_int_equal(kretry_step_batch(k, ops, ARRAY_SIZE(ops)), ARRAY_SIZE(ops));
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		assert_int_equal(ops[i].verdict, i == 70 || i == 199 ? KRETRY_ERROR : KRETRY_RETRY);
	assert_int_equal(KRETRY_OP_ERRNO(ops[199].flags), ENOENT);
	was.verdict = KRETRY_ERROR;
	was.flags |= EINVAL << 8;
	assert_memory_equal(&ops[70], &was, sizeof(was));
	kretry_close(k);
}

static void step_batch_draws_differ(void **state)
{
	struct kretry *k = open_process();
	u32 id = create(k, KRETRY_JITTER_FULL, 1000000000 * SEC, 3);
	struct kretry_op ops[130];
	unsigned int i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		ops[i] = failure_of(id);
	assert_int_equal(kretry_step_batch(k, ops, ARRAY_SIZE(ops)), ARRAY_SIZE(ops));
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		for (j = 0; j < i; j++)
			assert_true(ops[i].delay_ns != ops[j].delay_ns);
	kretry_close(k);
}

static void step_batch_size_at_its_edges(void **state)
{
	struct kretry *k = open_process();
	struct kretry_info info;
	struct kretry_op *ops;
	u32 id = create(k, KRETRY_JITTER_FULL, SEC, 3);
	unsigned int i;

	(void)state;
	assert_int_equal(kretry_info(k, &info), 0);
	ops = calloc(info.max_batch, sizeof(*ops));
	assert_non_null(ops);
	for (i = 0; i < info.max_batch; i++)
		ops[i] = failure_of(id);
	assert_int_equal(kretry_step_batch(k, ops, info.max_batch + 1), -EMSGSIZE);
	assert_int_equal(kretry_step_batch(k, NULL, 0), 0);
	assert_int_equal(kretry_step_batch(k, NULL, 1), -EFAULT);
	assert_int_equal(kretry_step_batch(k, ops, info.max_batch), info.max_batch);
	assert_int_equal(ops[info.max_batch - 1].verdict, KRETRY_RETRY);
	free(ops);
	kretry_close(k);
}

/* -------- a module that fails -------- */

static void module_failing_step_is_decided_in_process_with_limits(void **state)
{
	static const int errors[] = { EIO, EBADF, ENOTTY, ENODEV, ENOMEM, EPERM };
	struct kretry *k = open_module();
	u32 id = create(k, KRETRY_JITTER_NONE, SEC, 2);
	struct kretry_op op;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		device.step_errno = errors[i];
		op = failure_of(id);
		assert_int_equal(kretry_step(k, &op), 0);
		assert_int_equal(op.verdict, KRETRY_RETRY);
		assert_true(op.delay_ns == SEC);
		op.event = KRETRY_EVENT_TRANSIENT;
		assert_int_equal(kretry_step(k, &op), 0);
		op.event = KRETRY_EVENT_TRANSIENT;
		assert_int_equal(kretry_step_batch(k, &op, 1), 1);
		assert_int_equal(op.verdict, KRETRY_STOP_LIMIT);
	}
	assert_int_equal(device.steps, 3 * ARRAY_SIZE(errors));
	kretry_close(k);
}

static void module_answering_error_is_passed_on(void **state)
{
	static const int errors[] = { EINVAL, ENOENT, EFAULT, EOPNOTSUPP, ENOBUFS, EEXIST };
	struct kretry *k = open_module();
	struct kretry_op op = failure_of(create(k, KRETRY_JITTER_NONE, SEC, 2)), was = op;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		device.step_errno = errors[i];
		assert_int_equal(kretry_step(k, &op), -errors[i]);
		assert_int_equal(kretry_step_batch(k, &op, 1), -errors[i]);
		assert_memory_equal(&op, &was, sizeof(op));
	}
	device.step_errno = EMSGSIZE;
	assert_int_equal(kretry_step_batch(k, &op, 1), -EMSGSIZE);
	kretry_close(k);
}

/* -------- threads -------- */

static void *step_many(void *arg)
{
	struct kretry *k = arg;
	struct kretry_op op;
	uintptr_t bad = 0;
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		op = failure_of(1);
		bad += kretry_step(k, &op) != 0 || op.verdict != KRETRY_RETRY;
		op = failure_of(2 + i % 50);
		bad += kretry_step(k, &op) != 0 && op.verdict != 0;
	}
	return (void *)bad;
}

static void step_by_threads_while_policies_come_and_go(void **state)
{
	struct kretry *k = open_process();
	pthread_t threads[3];
	unsigned int i;
	void *bad;

	(void)state;
	assert_int_equal(create(k, KRETRY_JITTER_FULL, SEC, KRETRY_NO_LIMIT), 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, step_many, k), 0);
	for (i = 0; i < 5000; i++)
		assert_int_equal(kretry_policy_close(k, create(k, KRETRY_JITTER_FULL, SEC, 3)), 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &bad), 0);
		assert_null(bad);
	}
	kretry_close(k);
}

static void names_of_every_value_and_of_none(void **state)
{
	(void)state;
	assert_string_equal(kretry_verdict_name(KRETRY_RETRY), "retry");
	assert_string_equal(kretry_verdict_name(KRETRY_STOP_BUDGET), "stop-budget");
	assert_string_equal(kretry_verdict_name(KRETRY_STOP_PACED), "stop-paced");
	assert_string_equal(kretry_verdict_name(KRETRY_VERDICT_NONE), "?");
	assert_string_equal(kretry_verdict_name(KRETRY_STOP_PACED + 1), "?");
	assert_string_equal(kretry_event_name(KRETRY_EVENT_THROTTLED), "throttled");
	assert_string_equal(kretry_event_name(KRETRY_EVENT_NONE), "?");
	assert_string_equal(kretry_event_name(KRETRY_EVENT_PERMANENT + 1), "?");
	assert_false(kretry_is_stop(KRETRY_ERROR));
	assert_true(kretry_is_stop(KRETRY_STOP_PERMANENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_every_event_equals_decision_code),
		cmocka_unit_test(step_error_leaves_op_unchanged),
		cmocka_unit_test(step_forked_children_draw_differently),
		cmocka_unit_test(step_batch_one_bad_op_others_done),
		cmocka_unit_test(step_batch_draws_differ),
		cmocka_unit_test(step_batch_size_at_its_edges),
		cmocka_unit_test(module_failing_step_is_decided_in_process_with_limits),
		cmocka_unit_test(module_answering_error_is_passed_on),
		cmocka_unit_test(step_by_threads_while_policies_come_and_go),
		cmocka_unit_test(names_of_every_value_and_of_none),
	};

	return run_group(tests);
}
