/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What is shared about one key of one policy: budget, breaker, pacing and cooling. Pure: see
 * pure.h. Whoever calls has it to itself, in the module under the key's lock.
 */
#ifndef KRETRY_STATE_H
#define KRETRY_STATE_H

#include "pure.h"

/* A window is this many slices, of which the oldest lapses when a new one begins. */
#define KRETRY_SLICES		10

/* Distinct reporters that are told apart in a window. */
#define KRETRY_REPORTERS	8

/**
 * struct kretry_shared - shared state of one key, all times the host's
 * @touched_ns:		up to when slices of time have been turned over
 * @refilled_ns:	up to when the reserve has been refilled
 * @reserve_utok:	tokens that do not lapse
 * @deposits_utok:	tokens that lapse, by slice
 * @cooling_ns:		no attempt before this
 * @pace_next_ns:	the next free slot
 * @changed_ns:		open: when it becomes half-open. Else: when the state began
 * @generation:		of the attempts that count; 0 asks the caller for a fresh one
 * @calls:		results in the window, by slice
 * @failures:		failures among them
 * @slow:		slow calls among them
 * @reporter:		who reported them, as a short hash; only while @seen says so
 * @seen:		slices of that reporter's last result (low half) and last failure (high)
 * @streak:		failures in a row
 * @state:		enum kretry_state
 * @mode:		enum kretry_mode
 * @slice:		where the breaker's window is now
 * @growth:		openings in a row without closing in between
 * @probes_out:		probes not reported
 * @probes_ok:		successes of this half-open period
 * @probes_failed:	failures of this half-open period
 * @probes_lost:	probes in a row that were never reported
 */
struct kretry_shared {
	u64 touched_ns;
	u64 refilled_ns;
	u64 reserve_utok;
	u64 deposits_utok[KRETRY_SLICES];
	u64 cooling_ns;
	u64 pace_next_ns;
	u64 changed_ns;
	u32 generation;
	u16 calls[KRETRY_SLICES];
	u16 failures[KRETRY_SLICES];
	u16 slow[KRETRY_SLICES];
	u16 reporter[KRETRY_REPORTERS];
	u8 seen[KRETRY_REPORTERS];
	u16 streak;
	u8 state : 2;
	u8 mode : 2;
	u8 slice : 4;
	u8 growth;
	u8 probes_out;
	u8 probes_ok;
	u8 probes_failed;
	u8 probes_lost;
};

/* Where a window of @window_ns is at @now. */
static inline u32 kretry_slice_at(u64 window_ns, u64 now)
{
	u64 last = div64_u64(now, div64_u64(window_ns, KRETRY_SLICES));

	return last - div64_u64(last, KRETRY_SLICES) * KRETRY_SLICES;
}

/* How many slices of a window of @window_ns began since @then, at most KRETRY_SLICES. */
static inline u32 kretry_slices_since(u64 window_ns, u64 then, u64 now)
{
	u64 length = div64_u64(window_ns, KRETRY_SLICES);
	u64 passed = div64_u64(now, length) - div64_u64(then, length);

	return passed < KRETRY_SLICES ? passed : KRETRY_SLICES;
}

/* What a new key starts with. */
void kretry_shared_start(const struct kretry_policy *p, struct kretry_shared *s, u64 now);

/* Let time do its part on @s, up to @now. */
void kretry_shared_advance(const struct kretry_policy *p, struct kretry_shared *s, u64 now);

/* Whether @s, brought up to date, cannot be told from a new one. */
bool kretry_shared_is_new(const struct kretry_policy *p, const struct kretry_shared *s);

#endif /* KRETRY_STATE_H */
