// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What holds for every policy, with the sanitizers watching. KRETRY_SEED=N repeats a run. */
#include "random.h"
#include "unit.h"

#define POLICIES	200000

static u64 seed;

static void show(const struct kretry_policy *p, u32 n, const char *what)
{
	const struct kretry_backoff *b = &p->backoff;

	print_error("strategy %u jitter %u multiplier_ppm %u jitter_ppm %u n %u\n", b->strategy,
		    b->jitter, b->multiplier_ppm, b->jitter_ppm, n);
	print_error("base %llu cap %llu floor %llu\n", (unsigned long long)b->base_ns,
		    (unsigned long long)b->cap_ns, (unsigned long long)b->floor_ns);
	fail_msg("%s, KRETRY_SEED=%llu", what, (unsigned long long)seed);
}

static u32 random_n(struct prng *r)
{
	static const u32 edges[] = { 0, 1, 2, 9, 10, 62, 63, 64, 0x7fffffff, 0x80000000, U32_MAX };

	if (prng_below(r, 2))
		return edges[prng_below(r, ARRAY_SIZE(edges))];
	return prng_edgy(r, 0, U32_MAX);
}

static void delay_of_random_policy_between_floor_and_cap(void **state)
{
	struct prng r = { .state = seed };
	struct kretry_policy p;
	u32 i;

	(void)state;
	for (i = 0; i < POLICIES; i++) {
		u32 n = random_n(&r);
		u8 event = KRETRY_EVENT_TRANSIENT + prng_below(&r, 3);
		u64 previous = prng_edgy(&r, 0, U64_MAX), rnd = prng_next(&r), least, most, delay;

		random_policy(&r, &p);
		least = kretry_delay(&p.backoff, event, n, previous, 0);
		delay = kretry_delay(&p.backoff, event, n, previous, rnd);
		most = kretry_delay(&p.backoff, event, n, previous, U64_MAX);
		if (p.backoff.floor_ns > least || least > delay || delay > most ||
		    most > p.backoff.cap_ns)
			show(&p, n, "delay out of range");
		if (!least && p.backoff.jitter != KRETRY_JITTER_FULL &&
		    p.backoff.strategy != KRETRY_SLOTTED &&
		    kretry_ceiling(&p.backoff, kretry_base(&p.backoff, event), n) &&
		    kretry_base(&p.backoff, event))
			show(&p, n, "delay zero by accident");
	}
}

static void ceiling_of_random_policy_never_decreases_with_n(void **state)
{
	struct prng r = { .state = seed + 1 };
	struct kretry_policy p;
	u32 i, j;

	(void)state;
	for (i = 0; i < POLICIES; i++) {
		u32 n = random_n(&r), m = random_n(&r);
		u64 base, last;

		random_policy(&r, &p);
		base = kretry_base(&p.backoff, KRETRY_EVENT_TRANSIENT);
		last = kretry_ceiling(&p.backoff, base, n);
		if (kretry_ceiling(&p.backoff, base, min(n, m)) >
		    kretry_ceiling(&p.backoff, base, max(n, m)))
			show(&p, n, "ceiling falls in the long run");
		for (j = 1; j < 4 && n + j > n; j++) {
			u64 next = kretry_ceiling(&p.backoff, base, n + j);

			if (next < last || next > p.backoff.cap_ns)
				show(&p, n + j, "ceiling falls or passes the cap");
			last = next;
		}
	}
}

static void decision_of_random_op_never_wraps_or_moves_a_stop(void **state)
{
	struct prng r = { .state = seed + 2 };
	struct kretry_policy p;
	struct kretry_op before, op;
	u32 i;

	(void)state;
	for (i = 0; i < POLICIES; i++) {
		u64 now = prng_edgy(&r, 1, NS_MAX);
		int ret;

		random_policy(&r, &p);
		random_op(&r, now, &before);
		op = before;
		ret = kretry_decide(&p, &op, now, prng_next(&r));
		if (ret ? memcmp(&op, &before, sizeof(op)) : op.event)
			show(&p, before.attempt, "op changed by an error, or open to a replay");
		if (!ret && op.verdict >= KRETRY_STOP_PERMANENT &&
		    (op.attempt != before.attempt || op.deadline_ns ||
		     op.delay_ns != before.delay_ns))
			show(&p, before.attempt, "STOP moved the op");
		if (!ret && op.verdict == KRETRY_RETRY &&
		    (op.deadline_ns < now || op.deadline_ns > NS_MAX ||
		     op.deadline_ns - now != min(op.delay_ns, NS_MAX - now) ||
		     op.attempt < before.attempt || op.start_ns > now))
			show(&p, before.attempt, "deadline in the past or attempt wrapped");
	}
}

static void decision_without_needed_draw_ignores_it(void **state)
{
	struct prng r = { .state = seed + 3 };
	struct kretry_policy p;
	struct kretry_op one, two;
	u32 i, seen = 0;

	(void)state;
	for (i = 0; i < POLICIES; i++) {
		random_policy(&r, &p);
		random_op(&r, NOW, &one);
		two = one;
		if (kretry_needs_draw(&p, &one))
			continue;
		seen++;
		assert_int_equal(kretry_decide(&p, &one, NOW, 0),
				 kretry_decide(&p, &two, NOW, U64_MAX));
		assert_memory_equal(&one, &two, sizeof(one));
	}
	assert_true(seen > POLICIES / 4);
}

static void check_of_random_bytes_never_faults(void **state)
{
	struct prng r = { .state = seed + 4 };
	struct kretry_policy p;
	u32 i;

	(void)state;
	for (i = 0; i < POLICIES; i++) {
		int ret;

		random_suspect(&r, &p);
		ret = kretry_policy_check(&p);
		assert_true(ret == 0 || ret == -EINVAL || ret == -EOPNOTSUPP);
		if (!ret)
			kretry_delay(&p.backoff, KRETRY_EVENT_THROTTLED, random_n(&r), U64_MAX,
				     prng_next(&r));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delay_of_random_policy_between_floor_and_cap),
		cmocka_unit_test(ceiling_of_random_policy_never_decreases_with_n),
		cmocka_unit_test(decision_of_random_op_never_wraps_or_moves_a_stop),
		cmocka_unit_test(decision_without_needed_draw_ignores_it),
		cmocka_unit_test(check_of_random_bytes_never_faults),
	};
	const char *given = getenv("KRETRY_SEED");

	seed = given ? strtoull(given, NULL, 0) : fresh_u64();
	fprintf(stderr, "unit: properties with seed %llu\n", (unsigned long long)seed);
	return run_group(tests);
}
