// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Processes and threads that race for tokens and for probes: never one more than there are. */
#include "harness.h"
#include "shared.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define PROCESSES	4
#define THREADS		2
#define DECISIONS	1048576U	/* of all together */
#define TOKENS		400000ULL
#define BATCH		64
#define KEY		7

/* What all processes add up. */
struct tally {
	unsigned int ready, decisions, granted, deposits, wrong;
	int out, most_out;
	unsigned int probes, closed;
};

FIXTURE(shared_race) {
	struct kt_party me;
	struct kretry_policy policy;	/* "race" */
	int id;
};

static struct tally *tally;
static unsigned int probes;

FIXTURE_SETUP(shared_race)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "race");
	tally = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, tally);
}

FIXTURE_TEARDOWN(shared_race)
{
	kt_leave(&self->me);
}

#define ADD(where, n)	__atomic_add_fetch((where), (n), __ATOMIC_SEQ_CST)

struct racer {
	struct kt_party party;
	int id;
	void (*round)(struct racer *racer, struct kretry_op *ops);
	unsigned int seed;
};

static void *race(void *arg)
{
	struct racer *racer = arg;
	struct kretry_op ops[BATCH];
	unsigned int i;

	ADD(&tally->ready, 1);
	while (__atomic_load_n(&tally->ready, __ATOMIC_SEQ_CST) < PROCESSES * THREADS)
		sched_yield();
	for (i = 0; i < DECISIONS / PROCESSES / THREADS / BATCH; i++)
		racer->round(racer, ops);
	return NULL;
}

static int race_process(void (*round)(struct racer *racer, struct kretry_op *ops), unsigned int nr)
{
	struct racer racers[THREADS];
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){ .round = round, .seed = nr * THREADS + i + 1 };
		CHECK_EQ(0, kt_here(&racers[i].party));
		racers[i].id = kt_party_named(&racers[i].party, "race", 0);
		CHECK(racers[i].id > 0);
		CHECK_EQ(0, pthread_create(&threads[i], NULL, race, &racers[i]));
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static void race_all(struct __test_metadata *_metadata, FIXTURE_DATA(shared_race) *self,
		     void (*round)(struct racer *racer, struct kretry_op *ops))
{
	pid_t pids[PROCESSES];
	unsigned int i;

	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, self->id);
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(race_process(round, i));
	}
	for (i = 0; i < PROCESSES; i++)
		EXPECT_EQ(0, kt_wait(pids[i]));
	EXPECT_EQ(0, tally->wrong);
	EXPECT_LE(1000000, tally->decisions);
}

static unsigned int step_all(struct racer *racer, struct kretry_op *ops, unsigned int event,
			     unsigned int verdict)
{
	unsigned int i, got = 0;

	for (i = 0; i < BATCH; i++) {
		ops[i] = kt_op(racer->id, event);
		ops[i].key = KEY;
	}
	ADD(&tally->wrong, kt_batch(racer->party.fd, ops, BATCH) != BATCH);
	for (i = 0; i < BATCH; i++)
		got += ops[i].verdict == verdict;
	ADD(&tally->decisions, BATCH);
	return got;
}

/* -------- tokens -------- */

static void spend(struct racer *racer, struct kretry_op *ops)
{
	ADD(&tally->granted, step_all(racer, ops, KRETRY_EVENT_TRANSIENT, KRETRY_RETRY));
}

TEST_F(shared_race, tokens_raced_for_grants_equal_tokens)
{
	struct kretry_stat stat;

	kt_budget(&self->policy, TOKENS);
	race_all(_metadata, self, spend);
	EXPECT_EQ(TOKENS, tally->granted);
	EXPECT_EQ(0, kt_stat_key(&self->me, self->id, KEY).balance_utok);
	stat = kt_stat(&self->me, self->id);
	EXPECT_EQ(TOKENS * KRETRY_UTOK, stat.charged_utok);
	EXPECT_EQ(TOKENS, stat.retry);
	EXPECT_EQ(tally->decisions, stat.events[KRETRY_EVENT_TRANSIENT]);
	EXPECT_EQ(tally->decisions - TOKENS,
		  stat.stops[KRETRY_STOP_BUDGET - KRETRY_STOP_PERMANENT]);
}

/* Half of them deposit a third of a token each. */
static void spend_or_deposit(struct racer *racer, struct kretry_op *ops)
{
	if (rand_r(&racer->seed) % 2)
		spend(racer, ops);
	else
		ADD(&tally->deposits, step_all(racer, ops, KRETRY_EVENT_OK, KRETRY_DONE));
}

TEST_F(shared_race, tokens_spent_and_deposited_none_lost_or_made)
{
	const uint64_t third = KRETRY_UTOK / 3;
	uint64_t left;

	kt_budget(&self->policy, TOKENS / 100);
	self->policy.budget.capacity_utok = 10 * TOKENS * KRETRY_UTOK;
	self->policy.budget.deposit_first_success_utok = third;
	race_all(_metadata, self, spend_or_deposit);
	left = kt_stat_key(&self->me, self->id, KEY).balance_utok;
	EXPECT_LT(TOKENS / 10, tally->granted);
	EXPECT_EQ(TOKENS / 100 * KRETRY_UTOK + tally->deposits * third,
		  tally->granted * KRETRY_UTOK + left);
	EXPECT_EQ(tally->granted * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
}

/* Against a capacity of one token nothing piles up. */
TEST_F(shared_race, tokens_deposited_beyond_capacity_not_kept)
{
	kt_budget(&self->policy, 1);
	self->policy.budget.deposit_first_success_utok = KRETRY_UTOK;
	race_all(_metadata, self, spend_or_deposit);
	EXPECT_GE(KRETRY_UTOK, kt_stat_key(&self->me, self->id, KEY).balance_utok);
	EXPECT_GE(1 + tally->deposits, tally->granted);
	EXPECT_EQ(tally->granted * KRETRY_UTOK, kt_stat(&self->me, self->id).charged_utok);
}

/* -------- probes -------- */

/* Between a GO and its report a probe is out; more than there are must never be seen. */
static void probe_taken(void)
{
	int out = ADD(&tally->out, 1), most = __atomic_load_n(&tally->most_out, __ATOMIC_SEQ_CST);

	ADD(&tally->probes, 1);
	while (out > most && !__atomic_compare_exchange_n(&tally->most_out, &most, out, false,
							  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void probe_report(struct racer *racer, struct kretry_op *op)
{
	static const unsigned int events[] = {
		KRETRY_EVENT_TRANSIENT, KRETRY_EVENT_OK, KRETRY_EVENT_CANCELLED,
		KRETRY_EVENT_CANCELLED, KRETRY_EVENT_CANCELLED, KRETRY_EVENT_CANCELLED,
	};
	unsigned int event = events[rand_r(&racer->seed) % ARRAY_LEN(events)];

	ADD(&tally->out, -1);
	ADD(&tally->wrong, kt_report(&racer->party, op, event) < 0);
}

static void probe(struct racer *racer, struct kretry_op *ops)
{
	unsigned int i, closed = 0;

	step_all(racer, ops, KRETRY_EVENT_BEGIN, KRETRY_GO);
	for (i = 0; i < BATCH; i++)
		if (ops[i].verdict == KRETRY_GO && ops[i].flags & KRETRY_OP_PROBE)
			probe_taken();
	for (i = 0; i < BATCH; i++) {
		if (ops[i].verdict != KRETRY_GO)
			continue;
		if (ops[i].flags & KRETRY_OP_PROBE)
			probe_report(racer, &ops[i]);
		else if (!closed++)
			kt_report(&racer->party, &ops[i], KRETRY_EVENT_TRANSIENT);
	}
	ADD(&tally->closed, closed > 0);
}

static void race_for_probes(struct __test_metadata *_metadata, FIXTURE_DATA(shared_race) *self)
{
	struct kretry_stat stat;

	kt_breaker(&self->policy, 1, 20 * USEC, probes);
	self->policy.breaker.probe_timeout_ns = 3600 * SEC;
	race_all(_metadata, self, probe);
	TH_LOG("%u probes, %u rounds with the breaker closed", tally->probes, tally->closed);
	EXPECT_EQ((int)probes, tally->most_out);
	EXPECT_EQ(0, tally->out);
	EXPECT_LT(1000, tally->probes);
	EXPECT_LT(100, tally->closed);
	stat = kt_stat(&self->me, self->id);
	EXPECT_EQ(0, stat.leases);
	EXPECT_EQ(0, stat.probes_lost);
	EXPECT_LT(100, stat.opened);
}

TEST_F(shared_race, probe_raced_for_never_more_than_one_out)
{
	probes = 1;
	race_for_probes(_metadata, self);
}

/* Judged after all three, so that no probe of one half-open period is out in the next. */
TEST_F(shared_race, probes_raced_for_never_more_than_three_out)
{
	probes = 3;
	self->policy.breaker.half_open_ppm = KRETRY_PPM / 2;
	race_for_probes(_metadata, self);
}

/* -------- keys -------- */

/* Each round its own keys: they come and go under everybody's feet, and none is counted twice. */
static void use_keys(struct racer *racer, struct kretry_op *ops)
{
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		ops[i] = kt_op(racer->id, i % 2 ? KRETRY_EVENT_BEGIN : KRETRY_EVENT_TRANSIENT);
		ops[i].key = rand_r(&racer->seed) % 5000 + (i % 2) * 100000;
	}
	ADD(&tally->wrong, kt_batch(racer->party.fd, ops, BATCH) != BATCH);
	for (i = 0; i < BATCH; i++)
		ADD(&tally->granted, ops[i].verdict == KRETRY_RETRY);
	ADD(&tally->decisions, BATCH);
}

/* Each of 500 keys, and the overflow, has three tokens: no eviction makes any of them anew. */
TEST_F(shared_race, keys_made_and_forgotten_no_budget_twice)
{
	struct kretry_stat stat;
	uint64_t most;

	kt_budget(&self->policy, 3);
	race_all(_metadata, self, use_keys);
	stat = kt_stat(&self->me, self->id);
	most = 3 * (1024 + 1);
	TH_LOG("%u retries, %u keys, %llu evicted", tally->granted, stat.keys,
	       (unsigned long long)stat.evicted);
	EXPECT_GE(1024, stat.keys);
	EXPECT_LT(100, tally->granted);
	EXPECT_GE(most, tally->granted);
	EXPECT_EQ(tally->granted * KRETRY_UTOK, stat.charged_utok);
}

/* -------- names -------- */

/* Opened, created and unlinked by all at once: each that is got works. */
static void open_and_unlink(struct racer *racer, struct kretry_op *ops)
{
	struct kretry_policy policy;
	int id;

	kt_policy(&policy);
	kt_name(&policy, "fleeting");
	kt_budget(&policy, 1000000);
	id = kt_party_create(&racer->party, &policy);
	ADD(&tally->wrong, id <= 0);
	ops[0] = kt_op(id, KRETRY_EVENT_TRANSIENT);
	ADD(&tally->wrong, kt_step(racer->party.fd, &ops[0]) || ops[0].verdict != KRETRY_RETRY);
	if (rand_r(&racer->seed) % 4 == 0)
		kt_party_unlink(&racer->party, "fleeting", 0);
	ADD(&tally->wrong, kt_close(racer->party.fd, id) != 0);
	ADD(&tally->decisions, BATCH);
}

TEST_F(shared_race, name_created_and_unlinked_by_all_no_harm)
{
	struct kretry_policy_entry entry;

	race_all(_metadata, self, open_and_unlink);
	kt_list(self->me.fd, "fleeting", &entry);
	EXPECT_EQ(0, entry.openers);
	EXPECT_EQ(1, kt_list(self->me.fd, "race", &entry));
}

TEST_HARNESS_MAIN
