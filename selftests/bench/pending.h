/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What waits in the kernel by the thousand: kretry's queue, and what does the same without it. */
#ifndef KRETRY_BENCH_PENDING_H
#define KRETRY_BENCH_PENDING_H

#include "bench.h"

#define BATCH		64U

/* Deadlines: of what only waits at random in an hour, far behind all that is measured. */
#define LATER_FROM_NS	3600000000000ULL
#define LATER_TO_NS	7200000000000ULL
/* Of what is to expire: behind the arming of a batch, before the end of a spin. */
#define SOON_FROM_NS	300000ULL
#define SOON_TO_NS	400000ULL
#define SOON_SPIN_NS	450000ULL
/* Of a round trip, likewise. Some, one after the other, make a sample. */
#define TRIP_NS		30000ULL
#define TRIP_SPIN_NS	40000ULL
#define TRIPS		16U

/* The first ids of what is armed to expire and of round trips; the others count from 0. */
#define SOON_ID		(1ULL << 40)
#define TRIP_ID		(1ULL << 41)

/**
 * struct pending - one way to wait. An operation has an id, by which it can be cancelled
 * @name:	what the results are named by
 * @shuffled:	ids become user_data in no order
 * @open:	make it, empty
 * @close:	drop it with all that waits
 * @arm:	BATCH operations from that id on, until LATER
 * @cancel:	BATCH operations from that id on, each by a system call
 * @cancel_batch: the same all at once, or NULL
 * @arm_soon:	BATCH operations with ids of their own, until SOON
 * @read:	fetch these once they are due
 * @start:	decide on one operation and have it wait for TRIP_NS; NULL for none
 * @finish:	be told that it is over
 *
 * Functions that return something return what they took, in instructions.
 */
struct pending {
	const char *name;
	bool shuffled;
	void (*open)(void);
	void (*close)(void);
	__u64 (*arm)(__u64 id);
	__u64 (*cancel)(__u64 id);
	__u64 (*cancel_batch)(__u64 id);
	__u64 (*arm_soon)(void);
	__u64 (*read)(void);
	void (*start)(__u64 id);
	void (*finish)(void);
};

/* Compute for that long, whatever interrupts it. */
void spin(__u64 ns);

/* The same number for the same id, in no order. */
__u64 shuffle(__u64 id);

/* A random deadline from now on. */
__u64 deadline_in(__u64 from_ns, __u64 to_ns);

/* Make it, with a ring. */
void open_kind(const struct pending *kind);

/* All its acts while @count wait; the results' names end with @suffix. */
void measure_kind(FILE *out, const struct pending *kind, unsigned int count, const char *suffix);

/* The next entry of the ring: a command of kretry. */
void prepare_command(int fd, unsigned int cmd, void *arg, size_t size);

extern const struct pending queue_in_order, queue_shuffled, timeouts, timerfds;
extern struct io_uring pending_ring;

/* Submit what has been prepared and reap @count answers; returns what the submission took. */
__u64 submit_batch(unsigned int count);

#endif /* KRETRY_BENCH_PENDING_H */
