/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Random histories of one key: what happened to it, and what each event made of it. */
#ifndef KRETRY_UNIT_SEQUENCES_H
#define KRETRY_UNIT_SEQUENCES_H

#include "random.h"

#define STEPS	100

enum step_kind {
	STEP_EVENT,	/* an event of one of several operations */
	STEP_LOST,	/* a probe's lease has run out */
	STEP_MODE,	/* an operator sets a mode */
	STEP_UNDO,	/* the last grant of an operation does not reach it, or not again */
};

/* What can be seen of a key. */
struct snapshot {
	u64 balance;
	u64 reserve;
	u64 ages;	/* deposits, each times the slices it has left */
	u64 cooling;
	u64 pace_next;
	u64 half_open;
	u32 generation;
	u32 calls;
	u32 failures;
	u32 slow;
	u32 streak;
	u8 state;
	u8 mode;
	u8 growth;
	u8 probes_out;
	u8 probes_ok;
	u8 probes_failed;
	u8 probes_lost;
	u8 is_new;
	u32 reserved;
};

struct step {
	u64 now;
	u64 rnd;
	u64 ceiling;
	u64 charged;
	u64 returned;
	u32 kind;
	u32 which;	/* of the operations; the mode with STEP_MODE */
	u32 reporter;
	u32 leased;
	u32 is_wait;	/* the operation was told its generation beforehand */
	u32 reserved;
	struct kretry_op before;
	struct kretry_op after;
	struct snapshot key;
};

struct sequence {
	struct kretry_policy policy;
	u64 start;
	u64 counter;
	struct step steps[STEPS];
};

void random_sequence(struct prng *r, struct sequence *s);

#endif /* KRETRY_UNIT_SEQUENCES_H */
