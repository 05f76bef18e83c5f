// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Policies whose keys share a budget and a breaker. */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define TOKENS(n)	((n) * KRETRY_UTOK)

/* More than a measurement can spend: a retry that is refused would be cheaper. */
#define CAPACITY	TOKENS(10000000)

/* As gRPC's bucket, and a breaker that counts failures in a row. */
const struct shared plain = {
	.budget = {
		.capacity_utok = CAPACITY,
		.initial_utok = CAPACITY,
		.deposit_first_success_utok = KRETRY_UTOK / 10,
		.deposit_retry_success_utok = KRETRY_UTOK / 10,
		.drain_per_failure_utok = TOKENS(1),
		.admit_above_utok = CAPACITY / 2,
	},
	.breaker = {
		.consecutive = 5000,
		.probes = 1,
		.open_ns = 1000000000,
		.open_cap_ns = 1000000000,
		.probe_timeout_ns = 1000000000,
	},
};

/* As Linkerd's budget, and a breaker that has every rule on. */
const struct shared windowed = {
	.budget = {
		.capacity_utok = CAPACITY,
		.initial_utok = CAPACITY - TOKENS(100),
		.reserve_cap_utok = CAPACITY,
		.refill_utok_per_s = TOKENS(10),
		.deposit_request_utok = KRETRY_UTOK / 5,
		.cost_transient_utok = TOKENS(1),
		.cost_throttled_utok = TOKENS(1),
		.cost_unknown_utok = TOKENS(1),
		.window_ns = 10000000000,
	},
	.breaker = {
		.consecutive = 5000,
		.min_calls = 20,
		.ratio_ppm = KRETRY_PPM / 2,
		.slow_ppm = KRETRY_PPM / 2,
		.slow_ns = 60000000000,
		.min_reporters = 1,
		.probes = 1,
		.open_ns = 1000000000,
		.open_cap_ns = 1000000000,
		.window_ns = 10000000000,
		.probe_timeout_ns = 1000000000,
	},
};

unsigned int create_policy(const struct kretry_backoff *backoff, const struct shared *shared,
			   const char *name, int fd)
{
	struct kretry_policy policy = {
		.size = sizeof(policy),
		.clockid = CLOCK_MONOTONIC,
		.max_retries = KRETRY_NO_LIMIT,
		.backoff = *backoff,
	};

	if (shared) {
		policy.budget = shared->budget;
		policy.breaker = shared->breaker;
		snprintf((char *)policy.name, sizeof(policy.name), "%s", name);
	}
	must(!ioctl(fd, KRETRY_IOC_POLICY_CREATE, &policy), "POLICY_CREATE");
	return policy.id;
}

/* So many successes that the failures of a sample are a small share of the results. */
void succeed(const struct bench *bench)
{
	struct kretry_batch batch = {
		.size = sizeof(batch),
		.ops = (uintptr_t)ops,
		.count = BATCH_MAX,
		.op_size = sizeof(struct kretry_op),
	};
	unsigned int i, round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < BATCH_MAX; i++) {
			prepare_op(bench, &ops[i], i);
			ops[i].event = KRETRY_EVENT_OK;
		}
		must(ioctl(kretry_fd, KRETRY_IOC_STEP_BATCH, &batch) == (int)BATCH_MAX,
		     "STEP_BATCH");
	}
}

/* What a key takes of its slab, alignment included. */
unsigned int key_bytes(void)
{
	FILE *in = fopen("/sys/kernel/slab/kretry_key/slab_size", "re");
	unsigned int bytes;

	must(in && fscanf(in, "%u", &bytes) == 1, "/sys/kernel/slab/kretry_key/slab_size");
	fclose(in);
	return bytes;
}
