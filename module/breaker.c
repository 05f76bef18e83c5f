// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Each change of state asks for a fresh generation. A result counts in the generation that admitted
 * its attempt, or not at all; a probe's is counted by its lease.
 */
#include "breaker.h"

#include "delay.h"

#define KRETRY_NOT_SEEN	0xfU
#define KRETRY_MIX	0x9e3779b97f4a7c15ULL

enum kretry_outcome {
	KRETRY_OUTCOME_IGNORED,
	KRETRY_OUTCOME_SUCCESS,
	KRETRY_OUTCOME_FAILURE,
};

static void kretry_breaker_forget(struct kretry_shared *s)
{
	memset(s->calls, 0, sizeof(s->calls));
	memset(s->failures, 0, sizeof(s->failures));
	memset(s->slow, 0, sizeof(s->slow));
	memset(s->seen, 0xff, sizeof(s->seen));
	s->streak = 0;
}

void kretry_breaker_start(const struct kretry_breaker *k, struct kretry_shared *s, u64 now)
{
	kretry_breaker_forget(s);
	s->slice = k->window_ns ? kretry_slice_at(k->window_ns, now) : 0;
}

static void kretry_breaker_enter(struct kretry_shared *s, u8 state, u64 at)
{
	s->state = state;
	s->changed_ns = at;
	s->generation = 0;
	s->probes_out = 0;
	s->probes_ok = 0;
	s->probes_failed = 0;
	s->probes_lost = 0;
}

/* Grown, capped, and only then jittered, downwards where the cap is in the way. */
static u64 kretry_breaker_open_time(const struct kretry_breaker *k, u8 growth, u64 rnd)
{
	u64 time = k->open_ns, low, high;

	for (; growth && k->open_growth_ppm && time < k->open_cap_ns; growth--)
		time = kretry_share(time, k->open_growth_ppm);
	time = min(time, k->open_cap_ns);
	high = time + kretry_share(time, k->open_jitter_ppm);
	low = time - min(time, kretry_sat_sub(high, k->open_cap_ns));
	return kretry_uniform(low, min(high, k->open_cap_ns), rnd);
}

static void kretry_breaker_open(const struct kretry_breaker *k, struct kretry_shared *s, u64 now,
				u64 rnd)
{
	u64 time = kretry_breaker_open_time(k, s->growth, rnd);

	if (s->growth < 0xff)
		s->growth++;
	kretry_breaker_enter(s, KRETRY_OPEN, kretry_sat_add(now, time));
	kretry_breaker_forget(s);
}

static void kretry_breaker_close(struct kretry_shared *s, u64 now)
{
	kretry_breaker_enter(s, KRETRY_CLOSED, now);
	kretry_breaker_forget(s);
	s->growth = 0;
}

/* The window moves on to @slice: what was there ten slices ago lapses. */
static void kretry_breaker_turn(struct kretry_shared *s, u32 slice)
{
	u32 i;

	s->slice = slice;
	s->calls[slice] = 0;
	s->failures[slice] = 0;
	s->slow[slice] = 0;
	for (i = 0; i < KRETRY_REPORTERS; i++) {
		if ((s->seen[i] & 0xf) == slice)
			s->seen[i] = 0xff;
		else if (s->seen[i] >> 4 == slice)
			s->seen[i] |= KRETRY_NOT_SEEN << 4;
	}
}

void kretry_breaker_advance(const struct kretry_breaker *k, struct kretry_shared *s, u64 now)
{
	u32 slice, passed;

	if (s->state == KRETRY_OPEN && now >= s->changed_ns)
		kretry_breaker_enter(s, KRETRY_HALF_OPEN, now);
	if (k->window_calls || !k->window_ns)
		return;
	passed = kretry_slices_since(k->window_ns, s->touched_ns, now);
	if (!passed)
		return;
	slice = kretry_slice_at(k->window_ns, now);
	for (; passed; passed--)
		kretry_breaker_turn(s, (slice + KRETRY_SLICES + 1 - passed) % KRETRY_SLICES);
}

static u8 kretry_breaker_outcome(const struct kretry_breaker *k, const struct kretry_shared *s,
				 const struct kretry_result *r)
{
	u8 throttled = s->state == KRETRY_HALF_OPEN ? k->throttled_half_open : k->throttled;

	switch (r->event) {
	case KRETRY_EVENT_TRANSIENT:
	case KRETRY_EVENT_UNKNOWN:
		return KRETRY_OUTCOME_FAILURE;
	case KRETRY_EVENT_THROTTLED:
		if (throttled == KRETRY_THROTTLED_IGNORED)
			return KRETRY_OUTCOME_IGNORED;
		return throttled == KRETRY_THROTTLED_FAILURE ? KRETRY_OUTCOME_FAILURE :
							       KRETRY_OUTCOME_SUCCESS;
	default:
		return KRETRY_OUTCOME_SUCCESS;
	}
}

static bool kretry_breaker_is_slow(const struct kretry_breaker *k, const struct kretry_result *r)
{
	return k->slow_ppm && r->took_ns > k->slow_ns;
}

/*
 * Remember @who in the current slice. With all places taken there are reporters enough, but a
 * failure still takes the place of one that had none.
 */
static void kretry_breaker_see(struct kretry_shared *s, u16 who, bool failure)
{
	u32 i, place = KRETRY_REPORTERS, good = KRETRY_REPORTERS;

	for (i = 0; i < KRETRY_REPORTERS; i++) {
		if (s->seen[i] == 0xff) {
			place = min(place, i);
		} else if (s->reporter[i] == who) {
			place = i;
			break;
		} else if (s->seen[i] >> 4 == KRETRY_NOT_SEEN) {
			good = i;
		}
	}
	if (place == KRETRY_REPORTERS && failure)
		place = good;
	if (place == KRETRY_REPORTERS)
		return;
	s->reporter[place] = who;
	s->seen[place] = (s->seen[place] & 0xf0) | s->slice;
	if (failure)
		s->seen[place] = s->slice << 4 | s->slice;
}

/* Failures from one broken client do not open it for everybody else. */
static bool kretry_breaker_is_agreed(const struct kretry_breaker *k, const struct kretry_shared *s)
{
	u32 i, results = 0, failures = 0, need = k->min_reporters;

	for (i = 0; i < KRETRY_REPORTERS; i++) {
		results += s->seen[i] != 0xff;
		failures += s->seen[i] >> 4 != KRETRY_NOT_SEEN;
	}
	return failures >= min(need, results);
}

static u32 kretry_breaker_sum(const u16 *slices)
{
	u32 i, sum = 0;

#pragma GCC unroll 10
	for (i = 0; i < KRETRY_SLICES; i++)
		sum += slices[i];
	return sum;
}

static bool kretry_breaker_is_over(u32 part, u32 calls, u32 ppm)
{
	return ppm && (u64)part * KRETRY_PPM >= (u64)calls * ppm;
}

static bool kretry_breaker_trips(const struct kretry_breaker *k, const struct kretry_shared *s)
{
	u32 calls;

	if (k->consecutive && s->streak >= k->consecutive)
		return true;
	if (!k->ratio_ppm && !k->slow_ppm)
		return false;
	calls = kretry_breaker_sum(s->calls);
	if (calls < max(k->min_calls, 1U))
		return false;
	return (k->ratio_ppm &&
		kretry_breaker_is_over(kretry_breaker_sum(s->failures), calls, k->ratio_ppm)) ||
	       (k->slow_ppm &&
		kretry_breaker_is_over(kretry_breaker_sum(s->slow), calls, k->slow_ppm));
}

/* One more call in the window, for the rules that have one. */
static void kretry_breaker_tally(const struct kretry_breaker *k, struct kretry_shared *s,
				 bool failure, bool slow)
{
	u32 slice = s->slice;

	if (!k->window_calls && !k->window_ns)
		return;

	if (k->window_calls && s->calls[slice] >= k->window_calls / KRETRY_SLICES) {
		slice = (slice + 1) % KRETRY_SLICES;
		kretry_breaker_turn(s, slice);
	}
	if (s->calls[slice] == 0xffff) {
		s->calls[slice] /= 2;
		s->failures[slice] /= 2;
		s->slow[slice] /= 2;
	}
	s->calls[slice]++;
	s->failures[slice] += failure;
	s->slow[slice] += slow;
}

static void kretry_breaker_count(const struct kretry_breaker *k, struct kretry_shared *s,
				 const struct kretry_result *r, bool failure)
{
	bool slow = kretry_breaker_is_slow(k, r);

	kretry_breaker_tally(k, s, failure, slow);
	if (!failure)
		s->streak = 0;
	else if (s->streak < 0xffff)
		s->streak++;
	if (k->min_reporters > 1)
		kretry_breaker_see(s, r->reporter, failure || slow);
}

/* One more result while half-open: the first failure decides, or all probes together. */
static void kretry_breaker_judge(const struct kretry_breaker *k, struct kretry_shared *s, u64 now,
				 u64 rnd, bool failure)
{
	u32 results;
	bool bad;

	if (failure)
		s->probes_failed++;
	else
		s->probes_ok++;
	results = s->probes_ok + s->probes_failed;
	if (k->half_open_ppm) {
		if (results < k->probes)
			return;
		bad = kretry_breaker_is_over(s->probes_failed, results, k->half_open_ppm);
	} else {
		bad = failure;
		if (!bad && s->probes_ok < k->successes_to_close)
			return;
	}
	if (bad)
		kretry_breaker_open(k, s, now, rnd);
	else
		kretry_breaker_close(s, now);
}

/*
 * Whether the state that admitted the attempt is still on. A wait in the kernel is given a
 * generation of its own beforehand, later than that of the state at the time.
 */
static bool kretry_breaker_is_current(const struct kretry_shared *s, u32 generation)
{
	return generation && generation - s->generation <= U32_MAX / 2;
}

void kretry_breaker_record(const struct kretry_breaker *k, struct kretry_shared *s,
			   const struct kretry_result *r)
{
	u8 outcome = kretry_breaker_outcome(k, s, r);
	bool failure = outcome == KRETRY_OUTCOME_FAILURE;

	if (outcome == KRETRY_OUTCOME_IGNORED || s->mode == KRETRY_MODE_FORCED_CLOSED ||
	    s->mode == KRETRY_MODE_FORCED_OPEN)
		return;
	if (s->state == KRETRY_HALF_OPEN) {
		if (r->probe || r->generation == s->generation ||
		    (!kretry_breaker_enforced(k, s) && kretry_breaker_is_current(s, r->generation)))
			kretry_breaker_judge(k, s, r->now, r->rnd,
					     failure || kretry_breaker_is_slow(k, r));
	} else if (s->state == KRETRY_CLOSED && kretry_breaker_is_current(s, r->generation)) {
		kretry_breaker_count(k, s, r, failure);
		if (kretry_breaker_trips(k, s) &&
		    (k->min_reporters <= 1 || kretry_breaker_is_agreed(k, s)))
			kretry_breaker_open(k, s, r->now, r->rnd);
	}
}

static bool kretry_breaker_has_probe(const struct kretry_breaker *k, const struct kretry_shared *s)
{
	u32 taken = s->probes_out;

	if (k->half_open_ppm)
		taken += s->probes_ok + s->probes_failed;
	return taken < k->probes;
}

/* Whether admission still grows. A breaker that never closed, because it never opened, has none. */
static bool kretry_breaker_ramps(const struct kretry_breaker *k, const struct kretry_shared *s,
				 u64 now)
{
	return s->state == KRETRY_CLOSED && s->changed_ns &&
	       kretry_sat_sub(now, s->changed_ns) < k->ramp_ns;
}

/* The ramp mixes @rnd first: those it refuses draw their delay from it, from the whole range. */
bool kretry_breaker_admits(const struct kretry_breaker *k, const struct kretry_shared *s, u64 now,
			   u64 rnd)
{
	u64 closed_for = kretry_sat_sub(now, s->changed_ns);

	if (kretry_breaker_is_open(k, s))
		return false;
	if (kretry_breaker_probes(k, s))
		return kretry_breaker_has_probe(k, s);
	return !kretry_breaker_ramps(k, s, now) || !kretry_breaker_enforced(k, s) ||
	       kretry_uniform(0, k->ramp_ns - 1, rnd * KRETRY_MIX) < closed_for;
}

void kretry_breaker_return(struct kretry_shared *s)
{
	s->probes_out--;
	s->probes_lost = 0;
}

void kretry_breaker_lost(const struct kretry_breaker *k, struct kretry_shared *s, u64 now, u64 rnd)
{
	s->probes_out--;
	s->probes_lost++;
	if (s->probes_lost < k->probes)
		return;
	s->probes_lost = 0;
	kretry_breaker_judge(k, s, now, rnd, true);
}

bool kretry_breaker_is_new(const struct kretry_breaker *k, const struct kretry_shared *s)
{
	return s->state == KRETRY_CLOSED && !s->streak && !s->growth &&
	       !kretry_breaker_sum(s->calls) && !kretry_breaker_ramps(k, s, s->touched_ns);
}
