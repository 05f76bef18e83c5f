// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Many threads on one handle where the process decides, for ThreadSanitizer: they step, make,
 * share and close policies, queue, read and take back, look and force, open and close handles of
 * their own. And what is counted comes out right. Exits with 0, or says what is wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kretry.h"

#define ROUNDS		6000
#define TOKENS		500
#define EACH		2	/* threads of each kind */
#define QUEUED		(EACH * ROUNDS)
#define MS		1000000ULL

#define CHECK(true_if) do {                                                                        \
	if (!(true_if)) {                                                                          \
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #true_if);                      \
		exit(1);                                                                           \
	}                                                                                          \
} while (0)

static struct kretry *k;
static uint32_t budget, plain, breaker;
static atomic_int granted, queuers = EACH;
static atomic_uchar ended[QUEUED];	/* how often each queued op was read or taken back */

static struct kretry_policy policy_of(uint64_t base_ns)
{
	struct kretry_policy p;

	kretry_policy_init(&p);
	p.backoff.base_ns = base_ns;
	p.backoff.cap_ns = 1000 * MS;
	p.max_retries = KRETRY_NO_LIMIT;
	return p;
}

static void *step_budget(void *arg)
{
	struct kretry_op ops[4], op;
	int i, n;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		memset(ops, 0, sizeof(ops));
		for (n = 0; n < 4; n++)
			ops[n] = (struct kretry_op){ .policy = budget,
						     .event = KRETRY_EVENT_TRANSIENT };
		CHECK(kretry_step_batch(k, ops, 4) == 4);
		for (n = 0; n < 4; n++)
			granted += ops[n].verdict == KRETRY_RETRY;
		op = (struct kretry_op){ .policy = breaker, .key = (uint64_t)i % 50,
					 .event = i % 3 ? KRETRY_EVENT_TRANSIENT :
							  KRETRY_EVENT_BEGIN };
		CHECK(!kretry_step(k, &op));
	}
	return NULL;
}

static void *make_and_close(void *arg)
{
	struct kretry_policy p, copy;
	int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		p = policy_of(MS);
		CHECK(!kretry_policy_create(k, &p));
		CHECK(!kretry_policy_get(k, p.id, &copy) && copy.backoff.base_ns == MS);
		CHECK(!kretry_policy_close(k, p.id));
		CHECK(kretry_policy_get(k, p.id, &copy) == -ENOENT);
	}
	return NULL;
}

static void *share_names(void *arg)
{
	struct kretry_policy_entry *entries;
	struct kretry_policy p;
	struct kretry *own;
	unsigned int count;
	uint32_t id;
	int i, ret;

	for (i = 0; i < ROUNDS / 10; i++) {
		CHECK(!kretry_open(&own, NULL, KRETRY_PROCESS_ONLY));
		p = policy_of(MS);
		strcpy((char *)p.name, "shared");
		CHECK(!kretry_policy_create(own, &p));
		ret = kretry_policy_open(k, "shared", 0, &id);
		CHECK(!ret || ret == -ENOENT);
		CHECK(!kretry_policy_list(own, &entries, &count));
		free(entries);
		if (i % 7 == 0)
			kretry_policy_unlink(own, "shared", 0);
		if (!ret)
			CHECK(!kretry_policy_close(k, id));
		kretry_close(own);
	}
	return arg;
}

/* Each third is taken back, if nobody has read it yet. */
static void *queue(void *arg)
{
	uint64_t first = (uint64_t)(uintptr_t)arg * ROUNDS, i;
	struct kretry_op op;

	for (i = first; i < first + ROUNDS; i++) {
		op = (struct kretry_op){ .policy = plain, .event = KRETRY_EVENT_TRANSIENT,
					 .flags = KRETRY_OP_QUEUE, .user_data = i };
		CHECK(!kretry_step(k, &op));
		CHECK(op.verdict == KRETRY_RETRY);
		if (i % 3 == 0 && !kretry_queue_cancel(k, i, &op))
			ended[i]++;
	}
	queuers--;
	return NULL;
}

static void *read_queue(void *arg)
{
	struct kretry_stat stat;
	struct kretry_op ops[16];
	int i, count;
	bool last;

	do {
		last = !queuers;
		stat = (struct kretry_stat){ .policy = plain };
		CHECK(!kretry_stat(k, &stat));
		count = kretry_queue_read(k, ops, 16);
		CHECK(count >= 0);
		for (i = 0; i < count; i++)
			ended[ops[i].user_data]++;
	} while (!last || stat.queued);
	return arg;
}

static void *look_and_force(void *arg)
{
	struct kretry_force force;
	struct kretry_info info;
	struct kretry_stat stat;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		stat = (struct kretry_stat){ .policy = breaker, .flags = KRETRY_SCOPE_KEY,
					     .key = (uint64_t)i % 50 };
		CHECK(!kretry_stat(k, &stat));
		force = (struct kretry_force){ .policy = breaker, .mode = KRETRY_MODE_AUTOMATIC };
		CHECK(!kretry_force(k, &force));
		CHECK(!kretry_info(k, &info));
		CHECK(kretry_backend(k) == KRETRY_BACKEND_PROCESS && *kretry_backend_reason(k));
		CHECK(kretry_fd(k) == -EBADF && kretry_queue_fd(k) >= 0 && *kretry_uring_reason(k));
	}
	return arg;
}

static void set_up(void)
{
	struct kretry_policy p = policy_of(MS);

	CHECK(!kretry_open(&k, NULL, KRETRY_PROCESS_ONLY));
	CHECK(!kretry_policy_create(k, &p));
	plain = p.id;
	p = policy_of(MS);
	p.budget.capacity_utok = TOKENS * KRETRY_UTOK;
	p.budget.initial_utok = TOKENS * KRETRY_UTOK;
	p.budget.cost_transient_utok = KRETRY_UTOK;
	CHECK(!kretry_policy_create(k, &p));
	budget = p.id;
	p = policy_of(MS);
	p.breaker.consecutive = 2;
	p.breaker.probes = 1;
	p.breaker.open_ns = MS;
	p.breaker.open_cap_ns = MS;
	p.breaker.probe_timeout_ns = MS;
	CHECK(!kretry_policy_create(k, &p));
	breaker = p.id;
}

int main(void)
{
	void *(*const kinds[])(void *arg) = { step_budget, make_and_close, share_names, queue,
					      read_queue, look_and_force };
	enum { KINDS = sizeof(kinds) / sizeof(*kinds) };
	pthread_t threads[KINDS][EACH];
	int kind, i;

	set_up();
	for (kind = 0; kind < KINDS; kind++)
		for (i = 0; i < EACH; i++)
			CHECK(!pthread_create(&threads[kind][i], NULL, kinds[kind],
					      (void *)(uintptr_t)i));
	for (kind = 0; kind < KINDS; kind++)
		for (i = 0; i < EACH; i++)
			CHECK(!pthread_join(threads[kind][i], NULL));
	CHECK(granted == TOKENS);
	for (i = 0; i < QUEUED; i++)
		CHECK(ended[i] == 1);
	kretry_close(k);
	return 0;
}
