// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Steps on the caller's ring where io_uring has no command for them, and what is said of it. */
#include "waits.h"

static struct kretry_op failure_of(struct fixture *f)
{
	return (struct kretry_op){
		.policy = f->policy, .event = KRETRY_EVENT_TRANSIENT, .verdict = 0xa5,
	};
}

static int prep_step(struct fixture *f, struct kretry_op *ops, unsigned int count)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&f->ring);
	int ret;

	memset(sqe, 0xa5, sizeof(*sqe));
	ret = kretry_prep_step(sqe, f->k, ops, count);
	sqe->user_data = WAIT_DATA;
	return ret;
}

static void ops_are_answered_and_a_link_goes_on(void **state)
{
	struct kretry_op ops[3];
	struct fixture f;

	(void)state;
	open_fixture(&f, plain(MS));
	ops[0] = failure_of(&f);
	ops[1] = failure_of(&f);
	ops[2] = failure_of(&f);
	ops[1].event = KRETRY_EVENT_NONE;
	assert_int_equal(prep_step(&f, ops, 3), 0);
	prep_link(&f);
	assert_int_equal(next_result(&f, WAIT_DATA), 0);
	assert_int_equal(next_result(&f, LINK_DATA), 0);
	assert_int_equal(ops[0].verdict, KRETRY_RETRY);
	assert_int_equal(ops[1].verdict, KRETRY_ERROR);
	assert_int_equal(KRETRY_OP_ERRNO(ops[1].flags), EINVAL);
	assert_int_equal(ops[2].verdict, KRETRY_RETRY);
	close_fixture(&f);
}

static void no_ops_complete_with_none(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, plain(MS));
	assert_int_equal(prep_step(&f, NULL, 0), 0);
	assert_int_equal(next_result(&f, WAIT_DATA), 0);
	close_fixture(&f);
}

static void more_than_a_batch_fails_and_answers_none(void **state)
{
	const unsigned int count = PROCESS_MAX_BATCH + 1;
	struct kretry_op *ops = calloc(count, sizeof(*ops));
	struct fixture f;
	unsigned int i;

	(void)state;
	open_fixture(&f, plain(MS));
	for (i = 0; i < count; i++)
		ops[i] = failure_of(&f);
	assert_int_equal(prep_step(&f, ops, count), -EMSGSIZE);
	prep_link(&f);
	assert_true(next_result(&f, WAIT_DATA) < 0);
	assert_int_equal(next_result(&f, LINK_DATA), -ECANCELED);
	for (i = 0; i < count; i++)
		assert_int_equal(ops[i].verdict, KRETRY_VERDICT_NONE);
	close_fixture(&f);
	free(ops);
}

static void queue_of_a_scheduler_is_refused(void **state)
{
	struct kretry_sched *s;
	struct kretry_op op;
	struct fixture f;

	(void)state;
	open_fixture(&f, plain(MS));
	assert_int_equal(kretry_sched_init(&s, f.k, NULL, 1), 0);
	assert_int_equal(kretry_sched_set_method(s, KRETRY_METHOD_QUEUE), 0);
	op = failure_of(&f);
	op.flags = KRETRY_OP_QUEUE;
	assert_int_equal(prep_step(&f, &op, 1), -EBUSY);
	assert_true(next_result(&f, WAIT_DATA) < 0);
	assert_int_equal(op.verdict, KRETRY_VERDICT_NONE);
	assert_int_equal(op.event, KRETRY_EVENT_TRANSIENT);
	kretry_sched_exit(s);
	assert_int_equal(prep_step(&f, &op, 1), 0);
	assert_int_equal(op.flags, KRETRY_OP_QUEUE | KRETRY_OP_QUEUED);
	close_fixture(&f);
}

static void reason_names_the_process_and_its_cause(void **state)
{
	struct kretry *k;

	(void)state;
	assert_int_equal(kretry_open(&k, "/nonexistent/kretry", 0), 0);
	assert_string_equal(kretry_uring_reason(k),
			    "the process decides, not the module: /nonexistent/kretry: "
			    "No such file or directory: load the module with modprobe kretry");
	kretry_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_are_answered_and_a_link_goes_on),
		cmocka_unit_test(no_ops_complete_with_none),
		cmocka_unit_test(more_than_a_batch_fails_and_answers_none),
		cmocka_unit_test(queue_of_a_scheduler_is_refused),
		cmocka_unit_test(reason_names_the_process_and_its_cause),
	};

	return run_group(tests);
}
