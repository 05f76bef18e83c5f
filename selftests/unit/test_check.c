// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a policy may say: each field at and over its edges. */
#include "policies.h"

#define EXP		policy_of(KRETRY_EXPONENTIAL, KRETRY_JITTER_FULL, 100, 1000)
#define SLOTS		policy_of(KRETRY_SLOTTED, KRETRY_JITTER_NONE, 100, 1000)
#define TABLED		policy_of(KRETRY_TABLE, KRETRY_JITTER_EQUAL, 100, 1000)
#define WITH(jitter)	policy_of(KRETRY_FIXED, KRETRY_JITTER_##jitter, 100, 1000)

static void check_every_strategy_and_jitter_accepted_unless_drawn_twice(void **state)
{
	u8 strategy, jitter;

	(void)state;
	for (strategy = 0; strategy < 9; strategy++) {
		for (jitter = 0; jitter < 7; jitter++) {
			bool draws = strategy == KRETRY_DECORRELATED || strategy == KRETRY_SLOTTED;
			bool known = strategy >= KRETRY_FIXED && strategy <= KRETRY_TABLE &&
				     jitter <= KRETRY_JITTER_ADDITIVE;
			struct kretry_policy p = policy_of(strategy, jitter, 100, 1000);

			assert_int_equal(kretry_policy_check(&p),
					 known && (!draws || !jitter) ? 0 : -EINVAL);
		}
	}
}

static void check_head_out_of_range_einval(void **state)
{
	(void)state;
	VALID(PLAIN, p->clockid = 7);
	INVALID(PLAIN, p->clockid = 0);
	INVALID(PLAIN, p->clockid = 2);
	INVALID(PLAIN, p->clockid = U32_MAX);
	VALID(PLAIN, p->flags = 0x0f);
	INVALID(PLAIN, p->flags = 0x80);
	INVALID(PLAIN, p->flags = 0x80000000);
	INVALID(PLAIN, p->open_flags = 0x04);
	INVALID(PLAIN, p->reserved = 1);
	VALID(PLAIN, p->max_retries = 0);
	VALID(PLAIN, p->max_retries = U32_MAX - 1);
}

static void check_unnamed_policy_with_naming_fields_einval(void **state)
{
	(void)state;
	INVALID(PLAIN, p->open_flags = KRETRY_OPEN_GLOBAL);
	INVALID(PLAIN, p->uid = 1);
	INVALID(PLAIN, p->gid = 1);
	INVALID(PLAIN, p->mode = 0600);
	INVALID(PLAIN, p->linger_ns = 1);
	INVALID(PLAIN, p->name[1] = 'x');
	INVALID(PLAIN, p->name[KRETRY_NAME_MAX - 1] = 'x');
}

static void check_name_without_end_or_padding_einval(void **state)
{
	(void)state;
	INVALID(PLAIN, memset(p->name, 'x', KRETRY_NAME_MAX));
	INVALID(PLAIN, memcpy(p->name, "a\0b", 3));
	INVALID(PLAIN, (p->name[0] = 'x', p->linger_ns = NS_MAX + 1));
}

static void check_names_and_global_modes_in_range_accepted(void **state)
{
	(void)state;
	VALID(PLAIN, memset(p->name, 'x', KRETRY_NAME_MAX - 1));
	VALID(PLAIN, p->open_flags = KRETRY_OPEN_NOTIFY);
	VALID(PLAIN, (p->name[0] = 'x', p->linger_ns = NS_MAX));
	VALID(PLAIN, (p->name[0] = 'x', p->open_flags = KRETRY_OPEN_GLOBAL, p->mode = 0666,
		      p->uid = 1, p->gid = U32_MAX));
	INVALID(PLAIN, (p->name[0] = 'x', p->open_flags = KRETRY_OPEN_GLOBAL, p->mode = 0667));
	INVALID(PLAIN, (p->name[0] = 'x', p->mode = 0600));
	INVALID(PLAIN, (p->name[0] = 'x', p->uid = 1));
	INVALID(PLAIN, (p->name[0] = 'x', p->gid = 1));
}

static void check_limits_above_largest_duration_einval(void **state)
{
	static const size_t limits[] = {
		offsetof(struct kretry_policy, max_elapsed_ns),
		offsetof(struct kretry_policy, reset_after_ns),
		offsetof(struct kretry_policy, slack_ns),
		offsetof(struct kretry_policy, hint_limit_ns),
		offsetof(struct kretry_policy, hint_over_own_ns),
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		VALID(PLAIN, *(u64 *)((char *)p + limits[i]) = NS_MAX);
		INVALID(PLAIN, *(u64 *)((char *)p + limits[i]) = NS_MAX + 1);
		INVALID(PLAIN, *(u64 *)((char *)p + limits[i]) = U64_MAX);
	}
}

static void check_backoff_out_of_range_einval(void **state)
{
	(void)state;
	INVALID(PLAIN, p->backoff.reserved = 1);
	INVALID(PLAIN, p->backoff.reserved2 = 1);
	INVALID(PLAIN, p->backoff.multiplier_ppm = KRETRY_PPM);
	INVALID(PLAIN, p->backoff.jitter_ppm = 1);
	VALID(PLAIN, p->backoff.cap_ns = NS_MAX);
	INVALID(PLAIN, p->backoff.cap_ns = NS_MAX + 1);
	VALID(PLAIN, p->backoff.base_ns = 0);
	VALID(PLAIN, p->backoff.base_ns = 1000);
	INVALID(PLAIN, p->backoff.base_ns = 1001);
	VALID(PLAIN, p->backoff.base_throttled_ns = 1000);
	INVALID(PLAIN, p->backoff.base_throttled_ns = 1001);
	VALID(PLAIN, p->backoff.floor_ns = 1000);
	INVALID(PLAIN, p->backoff.floor_ns = 1001);
	VALID(EXP, p->backoff.multiplier_ppm = KRETRY_PPM);
	VALID(EXP, p->backoff.multiplier_ppm = U32_MAX);
	INVALID(EXP, p->backoff.multiplier_ppm = KRETRY_PPM - 1);
	INVALID(EXP, p->backoff.multiplier_ppm = 0);
}

static void check_jitter_ppm_out_of_range_einval(void **state)
{
	(void)state;
	INVALID(WITH(FULL), p->backoff.jitter_ppm = 1);
	INVALID(WITH(EQUAL), p->backoff.jitter_ppm = 1);
	VALID(WITH(PROPORTIONAL), p->backoff.jitter_ppm = 0);
	VALID(WITH(PROPORTIONAL), p->backoff.jitter_ppm = KRETRY_PPM);
	INVALID(WITH(PROPORTIONAL), p->backoff.jitter_ppm = KRETRY_PPM + 1);
	VALID(WITH(ADDITIVE), p->backoff.jitter_ppm = 0);
	VALID(WITH(ADDITIVE), p->backoff.jitter_ppm = U32_MAX);
}

static void check_slots_without_room_einval(void **state)
{
	(void)state;
	INVALID(SLOTS, p->backoff.base_ns = 0);
	VALID(SLOTS, p->backoff.base_throttled_ns = 0);
	VALID(SLOTS, p->backoff.floor_ns = 901);
	VALID(SLOTS, p->backoff.floor_ns = 1000);
	INVALID(SLOTS, (p->backoff.cap_ns = 999, p->backoff.floor_ns = 901));
	INVALID(SLOTS, (p->backoff.base_throttled_ns = 600, p->backoff.floor_ns = 601));
	INVALID(SLOTS, (p->backoff.cap_ns = NS_MAX, p->backoff.floor_ns = NS_MAX));
	VALID(SLOTS, (p->backoff.cap_ns = NS_MAX, p->backoff.floor_ns = NS_MAX,
		      p->backoff.base_ns = NS_MAX));
	INVALID(SLOTS, p->backoff.table_len = 1);
}

static void check_table_malformed_einval(void **state)
{
	(void)state;
	INVALID(TABLED, p->backoff.base_ns = 1);
	INVALID(TABLED, p->backoff.base_throttled_ns = 1);
	INVALID(TABLED, p->backoff.table_len = 0);
	INVALID(TABLED, p->backoff.table_len = 2);
	INVALID(TABLED, p->backoff.table_len = 4);
	INVALID(TABLED, p->backoff.table_len = KRETRY_TABLE_MAX + 1);
	INVALID(TABLED, p->backoff.table_len = 255);
	INVALID(TABLED, p->backoff.table_ns[1] = 99);
	INVALID(TABLED, p->backoff.table_ns[0] = 1001);
	INVALID(TABLED, p->backoff.table_ns[63] = 1);
	VALID(TABLED, p->backoff.table_ns[1] = 100);
	VALID(TABLED, p->backoff.table_ns[0] = 0);
	VALID(TABLED, p->backoff.table_ns[2] = NS_MAX);
	INVALID(TABLED, p->backoff.table_ns[2] = NS_MAX + 1);
	VALID(TABLED, (p->backoff.table_len = 64, memset(p->backoff.table_ns, 0, 64 * 8)));
	INVALID(PLAIN, p->backoff.table_len = 1);
	INVALID(PLAIN, p->backoff.table_ns[0] = 1);
	INVALID(PLAIN, p->backoff.table_ns[63] = 1);
}

/* Whatever the base and the cap: EINVAL, or delays in [0, cap] with every kind of draw. */
static void delays_of_degenerate_policy(const struct kretry_policy *p)
{
	static const u32 attempts[] = { 0, 1, 63, 64, U32_MAX };
	static const u64 draws[] = { 0, 1, U64_MAX / 2, U64_MAX };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(attempts); i++) {
		for (j = 0; j < ARRAY_SIZE(draws); j++) {
			u64 ns = kretry_delay(&p->backoff, KRETRY_EVENT_TRANSIENT, attempts[i],
					      draws[j], draws[j]);

			assert_in_range(ns, 0, p->backoff.cap_ns);
			if (p->backoff.strategy == KRETRY_FIXED && !p->backoff.jitter_ppm &&
			    p->backoff.jitter != KRETRY_JITTER_FULL &&
			    p->backoff.jitter != KRETRY_JITTER_EQUAL)
				assert_int_equal(ns, p->backoff.base_ns);
		}
	}
}

/* The policy of one cell of the matrix base x cap x jitter share. */
static bool degenerate_policy_accepted(u8 strategy, u8 jitter, u64 base, u64 cap, u32 share)
{
	struct kretry_policy p = policy_of(strategy, jitter, base, cap);

	if (jitter >= KRETRY_JITTER_PROPORTIONAL)
		p.backoff.jitter_ppm = share;
	if (kretry_policy_check(&p))
		return false;
	assert_true(base <= cap && cap <= NS_MAX);
	delays_of_degenerate_policy(&p);
	return true;
}

static void check_degenerate_parameters_refused_or_bounded(void **state)
{
	static const u64 bases[] = { 0, 1, 2, 100 };
	u32 i, accepted = 0;

	(void)state;
	for (i = 0; i < 6 * 5 * 4 * 4 * 2; i++) {
		u64 base = bases[i / 30 % 4], caps[] = { 0, 1, base - 1, base };

		accepted += degenerate_policy_accepted(KRETRY_FIXED + i % 6, i / 6 % 5, base,
						       caps[i / 120 % 4],
						       i / 480 ? KRETRY_PPM : 0);
	}
	assert_in_range(accepted, 200, 700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_every_strategy_and_jitter_accepted_unless_drawn_twice),
		cmocka_unit_test(check_head_out_of_range_einval),
		cmocka_unit_test(check_unnamed_policy_with_naming_fields_einval),
		cmocka_unit_test(check_name_without_end_or_padding_einval),
		cmocka_unit_test(check_names_and_global_modes_in_range_accepted),
		cmocka_unit_test(check_limits_above_largest_duration_einval),
		cmocka_unit_test(check_backoff_out_of_range_einval),
		cmocka_unit_test(check_jitter_ppm_out_of_range_einval),
		cmocka_unit_test(check_slots_without_room_einval),
		cmocka_unit_test(check_table_malformed_einval),
		cmocka_unit_test(check_degenerate_parameters_refused_or_bounded),
	};

	return run_group(tests);
}
