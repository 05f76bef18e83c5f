// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The layout of the ABI, the same in 32-bit and 64-bit programs. */
#include "harness.h"

struct row {
	const char *name;
	size_t want;
	size_t got;
};

#define SIZE(type, want)		{ "sizeof " #type, want, sizeof(struct type) }
#define FIELD(type, field, want)	{ #type "." #field, want, offsetof(struct type, field) }

#define EXPECT_ROWS(rows)	EXPECT_EQ(0, mismatches(rows, ARRAY_LEN(rows)))

static int mismatches(const struct row *rows, size_t count)
{
	int bad = 0;

	for (; count; count--, rows++) {
		if (rows->want == rows->got)
			continue;
		fprintf(stderr, "# %s is %zu, not %zu\n", rows->name, rows->got, rows->want);
		bad++;
	}
	return bad;
}

TEST(layout_op_one_cache_line)
{
	static const struct row rows[] = {
		SIZE(kretry_op, 64),
		FIELD(kretry_op, policy, 0),
		FIELD(kretry_op, event, 4),
		FIELD(kretry_op, verdict, 5),
		FIELD(kretry_op, flags, 6),
		FIELD(kretry_op, key, 8),
		FIELD(kretry_op, user_data, 16),
		FIELD(kretry_op, hint_ns, 24),
		FIELD(kretry_op, attempt, 32),
		FIELD(kretry_op, generation, 36),
		FIELD(kretry_op, start_ns, 40),
		FIELD(kretry_op, delay_ns, 48),
		FIELD(kretry_op, deadline_ns, 56),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_policy_as_published)
{
	static const struct row rows[] = {
		SIZE(kretry_policy, 944),
		FIELD(kretry_policy, size, 0),
		FIELD(kretry_policy, id, 4),
		FIELD(kretry_policy, flags, 8),
		FIELD(kretry_policy, open_flags, 12),
		FIELD(kretry_policy, clockid, 16),
		FIELD(kretry_policy, max_retries, 20),
		FIELD(kretry_policy, uid, 24),
		FIELD(kretry_policy, gid, 28),
		FIELD(kretry_policy, mode, 32),
		FIELD(kretry_policy, reserved, 36),
		FIELD(kretry_policy, linger_ns, 40),
		FIELD(kretry_policy, name, 48),
		FIELD(kretry_policy, max_elapsed_ns, 112),
		FIELD(kretry_policy, reset_after_ns, 120),
		FIELD(kretry_policy, slack_ns, 128),
		FIELD(kretry_policy, hint_limit_ns, 136),
		FIELD(kretry_policy, hint_over_own_ns, 144),
		FIELD(kretry_policy, backoff, 152),
		FIELD(kretry_policy, budget, 712),
		FIELD(kretry_policy, breaker, 832),
		FIELD(kretry_policy, pacing, 928),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_backoff_as_published)
{
	static const struct row rows[] = {
		SIZE(kretry_backoff, 560),
		FIELD(kretry_backoff, strategy, 0),
		FIELD(kretry_backoff, jitter, 1),
		FIELD(kretry_backoff, table_len, 2),
		FIELD(kretry_backoff, reserved, 3),
		FIELD(kretry_backoff, multiplier_ppm, 4),
		FIELD(kretry_backoff, jitter_ppm, 8),
		FIELD(kretry_backoff, reserved2, 12),
		FIELD(kretry_backoff, base_ns, 16),
		FIELD(kretry_backoff, base_throttled_ns, 24),
		FIELD(kretry_backoff, cap_ns, 32),
		FIELD(kretry_backoff, floor_ns, 40),
		FIELD(kretry_backoff, table_ns, 48),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_budget_as_published)
{
	static const struct row rows[] = {
		SIZE(kretry_budget, 120),
		FIELD(kretry_budget, capacity_utok, 0),
		FIELD(kretry_budget, initial_utok, 8),
		FIELD(kretry_budget, reserve_cap_utok, 16),
		FIELD(kretry_budget, refill_utok_per_s, 24),
		FIELD(kretry_budget, deposit_request_utok, 32),
		FIELD(kretry_budget, deposit_first_success_utok, 40),
		FIELD(kretry_budget, deposit_retry_success_utok, 48),
		FIELD(kretry_budget, drain_per_failure_utok, 56),
		FIELD(kretry_budget, cost_transient_utok, 64),
		FIELD(kretry_budget, cost_throttled_utok, 72),
		FIELD(kretry_budget, cost_unknown_utok, 80),
		FIELD(kretry_budget, admit_above_utok, 88),
		FIELD(kretry_budget, window_ns, 96),
		FIELD(kretry_budget, max_retrying, 104),
		FIELD(kretry_budget, retrying_ppm, 108),
		FIELD(kretry_budget, flags, 112),
		FIELD(kretry_budget, reserved, 116),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_breaker_and_pacing_as_published)
{
	static const struct row rows[] = {
		SIZE(kretry_breaker, 96),
		FIELD(kretry_breaker, consecutive, 0),
		FIELD(kretry_breaker, min_calls, 4),
		FIELD(kretry_breaker, ratio_ppm, 8),
		FIELD(kretry_breaker, slow_ppm, 12),
		FIELD(kretry_breaker, half_open_ppm, 16),
		FIELD(kretry_breaker, open_growth_ppm, 20),
		FIELD(kretry_breaker, open_jitter_ppm, 24),
		FIELD(kretry_breaker, window_calls, 28),
		FIELD(kretry_breaker, probes, 32),
		FIELD(kretry_breaker, successes_to_close, 36),
		FIELD(kretry_breaker, min_reporters, 40),
		FIELD(kretry_breaker, throttled, 41),
		FIELD(kretry_breaker, throttled_half_open, 42),
		FIELD(kretry_breaker, reserved, 43),
		FIELD(kretry_breaker, flags, 44),
		FIELD(kretry_breaker, open_ns, 48),
		FIELD(kretry_breaker, open_cap_ns, 56),
		FIELD(kretry_breaker, window_ns, 64),
		FIELD(kretry_breaker, probe_timeout_ns, 72),
		FIELD(kretry_breaker, slow_ns, 80),
		FIELD(kretry_breaker, ramp_ns, 88),
		SIZE(kretry_pacing, 16),
		FIELD(kretry_pacing, pace_ns, 0),
		FIELD(kretry_pacing, horizon_ns, 8),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_small_structs_as_published)
{
	static const struct row rows[] = {
		SIZE(kretry_info, 40),
		FIELD(kretry_info, size, 0),
		FIELD(kretry_info, abi_version, 4),
		FIELD(kretry_info, features, 8),
		FIELD(kretry_info, max_batch, 16),
		FIELD(kretry_info, max_policies, 20),
		FIELD(kretry_info, max_keys, 24),
		FIELD(kretry_info, max_queued, 28),
		FIELD(kretry_info, max_linger_ns, 32),
		SIZE(kretry_policy_ref, 80),
		FIELD(kretry_policy_ref, size, 0),
		FIELD(kretry_policy_ref, id, 4),
		FIELD(kretry_policy_ref, open_flags, 8),
		FIELD(kretry_policy_ref, reserved, 12),
		FIELD(kretry_policy_ref, name, 16),
		SIZE(kretry_batch, 24),
		FIELD(kretry_batch, size, 0),
		FIELD(kretry_batch, flags, 4),
		FIELD(kretry_batch, ops, 8),
		FIELD(kretry_batch, count, 16),
		FIELD(kretry_batch, op_size, 20),
		SIZE(kretry_uring, 16),
		FIELD(kretry_uring, ops, 0),
		FIELD(kretry_uring, count, 8),
		FIELD(kretry_uring, op_size, 12),
		FIELD(kretry_uring, flags, 14),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_structs_of_later_commands_as_published)
{
	static const struct row rows[] = {
		SIZE(kretry_policy_entry, 88),
		FIELD(kretry_policy_entry, open_flags, 0),
		FIELD(kretry_policy_entry, uid, 4),
		FIELD(kretry_policy_entry, gid, 8),
		FIELD(kretry_policy_entry, mode, 12),
		FIELD(kretry_policy_entry, openers, 16),
		FIELD(kretry_policy_entry, keys, 20),
		FIELD(kretry_policy_entry, name, 24),
		SIZE(kretry_policy_list, 24),
		FIELD(kretry_policy_list, size, 0),
		FIELD(kretry_policy_list, entry_size, 4),
		FIELD(kretry_policy_list, entries, 8),
		FIELD(kretry_policy_list, count, 16),
		FIELD(kretry_policy_list, reserved, 20),
		SIZE(kretry_cancel, 80),
		FIELD(kretry_cancel, size, 0),
		FIELD(kretry_cancel, flags, 4),
		FIELD(kretry_cancel, user_data, 8),
		FIELD(kretry_cancel, op, 16),
		SIZE(kretry_force, 24),
		FIELD(kretry_force, size, 0),
		FIELD(kretry_force, policy, 4),
		FIELD(kretry_force, flags, 8),
		FIELD(kretry_force, mode, 12),
		FIELD(kretry_force, key, 16),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_stat_as_published)
{
	static const struct row rows[] = {
		SIZE(kretry_stat, 368),
		FIELD(kretry_stat, size, 0),
		FIELD(kretry_stat, policy, 4),
		FIELD(kretry_stat, flags, 8),
		FIELD(kretry_stat, keys, 12),
		FIELD(kretry_stat, key, 16),
		FIELD(kretry_stat, events, 24),
		FIELD(kretry_stat, go, 88),
		FIELD(kretry_stat, retry, 96),
		FIELD(kretry_stat, done, 104),
		FIELD(kretry_stat, stops, 112),
		FIELD(kretry_stat, charged_utok, 240),
		FIELD(kretry_stat, refunded_utok, 248),
		FIELD(kretry_stat, balance_utok, 256),
		FIELD(kretry_stat, opened, 264),
		FIELD(kretry_stat, transitions, 272),
		FIELD(kretry_stat, evicted, 280),
		FIELD(kretry_stat, probes_lost, 288),
		FIELD(kretry_stat, queued, 296),
		FIELD(kretry_stat, leases, 300),
		FIELD(kretry_stat, state, 304),
		FIELD(kretry_stat, mode, 308),
		FIELD(kretry_stat, streak, 312),
		FIELD(kretry_stat, window_calls, 316),
		FIELD(kretry_stat, window_failures, 320),
		FIELD(kretry_stat, reserved, 324),
		FIELD(kretry_stat, half_open_ns, 328),
		FIELD(kretry_stat, cooling_ns, 336),
		FIELD(kretry_stat, pace_next_ns, 344),
		FIELD(kretry_stat, redrawn, 352),
		FIELD(kretry_stat, spread, 360),
	};

	EXPECT_ROWS(rows);
}

TEST(layout_command_numbers_as_published)
{
	EXPECT_EQ(0xd900, KRETRY_IOC_INFO);
	EXPECT_EQ(0xd901, KRETRY_IOC_POLICY_CREATE);
	EXPECT_EQ(0xd902, KRETRY_IOC_POLICY_OPEN);
	EXPECT_EQ(0xd903, KRETRY_IOC_POLICY_GET);
	EXPECT_EQ(0xd904, KRETRY_IOC_POLICY_CLOSE);
	EXPECT_EQ(0xd905, KRETRY_IOC_POLICY_UNLINK);
	EXPECT_EQ(0xd906, KRETRY_IOC_POLICY_LIST);
	EXPECT_EQ(0xd907, KRETRY_IOC_STEP);
	EXPECT_EQ(0xd908, KRETRY_IOC_STEP_BATCH);
	EXPECT_EQ(0xd909, KRETRY_IOC_WAIT);
	EXPECT_EQ(0xd90a, KRETRY_IOC_CANCEL);
	EXPECT_EQ(0xd90b, KRETRY_IOC_STAT);
	EXPECT_EQ(0xd90c, KRETRY_IOC_FORCE);
	EXPECT_EQ(0xd90d, KRETRY_IOC_SHUTDOWN);
}

TEST_HARNESS_MAIN
