// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Processes that use a budget and a breaker are killed at random instants, ten thousand of them.
 * What they held comes back, nobody else waits, and the counters are exact at the end.
 */
#include "harness.h"
#include "shared.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#define KILLS	10000
#define VICTIMS	4
#define KEY	7
#define TOKENS	100000000ULL

/*
 * A bystander measures each of its calls. In virtual time nothing outside can hold it up. With
 * several CPUs a busy host can, by stopping one of them with a lock in its hands: there only most
 * of the calls have to be that short, and none may hang.
 */
#define LONGEST		(10 * MSEC)
#define LONGEST_SMP	(5 * SEC)

struct measured {
	bool stop;
	uint64_t calls, late, longest;
};

FIXTURE(shared_kill) {
	struct kt_party me;
	struct kretry_policy policy;	/* "kill": opens at once for 50 us, two probes */
	struct measured *measured;
	int id;
};

FIXTURE_SETUP(shared_kill)
{
	ASSERT_EQ(0, kt_here(&self->me));
	kt_policy(&self->policy);
	kt_name(&self->policy, "kill");
	kt_budget(&self->policy, TOKENS);
	kt_breaker(&self->policy, 1, 50 * USEC, 2);
	self->policy.breaker.probe_timeout_ns = 3600 * SEC;
	self->id = kt_party_create(&self->me, &self->policy);
	ASSERT_LT(0, self->id);
	self->measured = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
	ASSERT_NE(MAP_FAILED, self->measured);
}

FIXTURE_TEARDOWN(shared_kill)
{
	kt_leave(&self->me);
}

/* BEGIN and a result, for ever; where the breaker is half-open, with a probe in hand. */
static void use(struct kt_party *party, int id, unsigned int *seed)
{
	static const unsigned int results[] = {
		KRETRY_EVENT_TRANSIENT, KRETRY_EVENT_OK, KRETRY_EVENT_TRANSIENT,
		KRETRY_EVENT_CANCELLED,
	};
	struct kretry_op ops[8];
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		ops[i] = kt_op(id, KRETRY_EVENT_BEGIN);
		ops[i].key = KEY;
	}
	kt_batch(party->fd, ops, ARRAY_LEN(ops));
	for (i = 0; i < ARRAY_LEN(ops); i++)
		if (ops[i].verdict == KRETRY_GO)
			kt_report(party, &ops[i], results[rand_r(seed) % ARRAY_LEN(results)]);
}

/* Processes of their own, but in the memory of the one that starts them: that is quick. */
struct victim {
	char stack[16384] __attribute__((aligned(16)));
	unsigned int seed;
	pid_t pid;
};

static int victim(void *arg)
{
	unsigned int seed = ((struct victim *)arg)->seed;
	struct kt_party me;
	int id;

	CHECK_EQ(0, kt_here(&me));
	id = kt_party_named(&me, "kill", 0);
	CHECK(id > 0);
	for (;;)
		use(&me, id, &seed);
}

static void measure(struct measured *m, uint64_t start)
{
	uint64_t took = kt_now(CLOCK_MONOTONIC) - start;

	m->calls++;
	m->late += took > LONGEST;
	m->longest = took > m->longest ? took : m->longest;
}

/* In front of all others, so that it waits for the module and not for its turn. */
static int bystander(struct measured *m)
{
	struct sched_param first = { .sched_priority = 50 };
	struct kt_party me;
	struct kretry_op op;
	uint64_t start;
	int id;

	CHECK_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
	CHECK_EQ(0, mlockall(MCL_CURRENT | MCL_FUTURE));
	CHECK_EQ(0, kt_here(&me));
	id = kt_party_named(&me, "kill", 0);
	CHECK(id > 0);
	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED)) {
		start = kt_now(CLOCK_MONOTONIC);
		CHECK(kt_begin(&me, id, KEY, &op) > 0);
		measure(m, start);
		start = kt_now(CLOCK_MONOTONIC);
		CHECK(kt_report(&me, &op, KRETRY_EVENT_CANCELLED) > 0);
		measure(m, start);
		kt_sleep(200 * USEC);
	}
	return 0;
}

static void kill_them(struct __test_metadata *_metadata)
{
	static struct victim victims[VICTIMS];
	unsigned int seed = 1;
	struct victim *next;
	int i;

	for (i = 0; i < KILLS + VICTIMS; i++) {
		next = &victims[i % VICTIMS];
		if (next->pid) {
			kt_sleep(rand_r(&seed) % 300 * USEC);
			kill(next->pid, SIGKILL);
			ASSERT_EQ(128 + SIGKILL, kt_wait(next->pid));
			next->pid = 0;
		}
		if (i >= KILLS)
			continue;
		next->seed = i + 1;
		next->pid = clone(victim, next->stack + sizeof(next->stack), CLONE_VM | SIGCHLD,
				  next);
		ASSERT_LT(0, next->pid);
	}
}

static uint64_t sum(const __u64 *counts, size_t n)
{
	uint64_t total = 0;

	while (n)
		total += counts[--n];
	return total;
}

static void expect_exact(struct __test_metadata *_metadata, FIXTURE_DATA(shared_kill) *self)
{
	struct kretry_stat stat = kt_stat(&self->me, self->id);

	TH_LOG("%llu opened, %llu probes lost, %llu retries", (unsigned long long)stat.opened,
	       (unsigned long long)stat.probes_lost, (unsigned long long)stat.retry);
	EXPECT_EQ(0, stat.leases);
	EXPECT_EQ(sum(stat.events, 8), stat.go + stat.retry + stat.done + sum(stat.stops, 16));
	EXPECT_EQ(stat.retry * KRETRY_UTOK, stat.charged_utok);
	EXPECT_EQ(TOKENS * KRETRY_UTOK,
		  stat.charged_utok + kt_stat_key(&self->me, self->id, KEY).balance_utok);
	EXPECT_LT(100, stat.opened);
	EXPECT_LT(100, stat.probes_lost);
	EXPECT_LT(100, stat.retry);
}

/* After all that the breaker still does what a new one does. */
static void expect_works(struct __test_metadata *_metadata, FIXTURE_DATA(shared_kill) *self)
{
	struct kretry_op op;
	int tries;

	for (tries = 0; tries < 100; tries++) {
		if (kt_begin(&self->me, self->id, KEY, &op) == KRETRY_GO)
			kt_report(&self->me, &op, KRETRY_EVENT_OK);
		if (kt_stat_key(&self->me, self->id, KEY).state == KRETRY_CLOSED)
			break;
		kt_sleep(MSEC);
	}
	EXPECT_GT(10, tries);
	EXPECT_EQ(KRETRY_GO, kt_begin(&self->me, self->id, KEY, &op));
}

TEST_F(shared_kill, ten_thousand_killed_at_random_instants_nothing_lost)
{
	const char *mode = getenv("KRETRY_VM_MODE");
	bool smp = !mode || strcmp(mode, "virtual");
	struct measured *m = self->measured;
	pid_t pid = fork();

	if (!pid)
		_exit(bystander(m));
	kill_them(_metadata);
	__atomic_store_n(&m->stop, true, __ATOMIC_RELAXED);
	EXPECT_EQ(0, kt_wait(pid));
	TH_LOG("%llu calls, longest %llu us, %llu above 10 ms", (unsigned long long)m->calls,
	       (unsigned long long)m->longest / USEC, (unsigned long long)m->late);
	EXPECT_LT(1000, m->calls);
	EXPECT_GE(smp ? LONGEST_SMP : LONGEST, m->longest);
	EXPECT_GE(smp ? m->calls / 20 : 0, m->late);
	expect_exact(_metadata, self);
	expect_works(_metadata, self);
}

TEST_HARNESS_MAIN
