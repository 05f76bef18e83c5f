// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the decision code answers to random questions, for oracle.py to judge:
 *   vectors policies SEED COUNT   a policy and what its check said
 *   vectors ops SEED COUNT        a valid policy and OPS operations with their answers
 *   vectors sequences SEED COUNT  a valid policy and the history of one of its keys
 * Records are the structs themselves. The same seed gives the same records.
 */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"
#include "sequences.h"

#define OPS	4

struct answer {
	u64 now;
	u64 rnd;
	u64 ceiling;
	u64 ceiling_next;
	u64 delay;
	__s64 ret;
	struct kretry_op before;
	struct kretry_op after;
};

struct policy_record {
	struct kretry_policy policy;
	__s64 ret;
};

struct ops_record {
	struct kretry_policy policy;
	struct answer answers[OPS];
};

static void answer_one(struct prng *r, const struct kretry_policy *p, struct answer *a)
{
	const struct kretry_backoff *b = &p->backoff;
	u32 n;

	a->now = prng_edgy(r, 1, KRETRY_NS_MAX);
	a->rnd = prng_below(r, 8) ? prng_next(r) : prng_edgy(r, 0, U64_MAX);
	random_op(r, a->now, &a->before);
	n = a->before.attempt;
	a->ceiling = kretry_ceiling(b, kretry_base(b, a->before.event), n);
	a->ceiling_next = kretry_ceiling(b, kretry_base(b, a->before.event), n + (n < U32_MAX));
	a->delay = kretry_delay(b, a->before.event, n, a->before.delay_ns, a->rnd);
	a->after = a->before;
	a->ret = kretry_decide(p, &a->after, a->now, a->rnd);
}

static void put(const void *record, size_t size)
{
	if (fwrite(record, size, 1, stdout) != 1) {
		perror("vectors");
		exit(1);
	}
}

static void policies(struct prng *r, u64 count)
{
	static struct policy_record record;

	while (count--) {
		random_suspect(r, &record.policy);
		record.ret = kretry_policy_check(&record.policy);
		put(&record, sizeof(record));
	}
}

static void ops(struct prng *r, u64 count)
{
	static struct ops_record record;
	u64 i;

	while (count--) {
		random_policy(r, &record.policy);
		if (kretry_policy_check(&record.policy)) {
			fprintf(stderr, "vectors: a valid policy was refused\n");
			exit(1);
		}
		for (i = 0; i < OPS; i++)
			answer_one(r, &record.policy, &record.answers[i]);
		put(&record, sizeof(record));
	}
}

static void sequences(struct prng *r, u64 count)
{
	static struct sequence record;

	while (count--) {
		random_sequence(r, &record);
		put(&record, sizeof(record));
	}
}

int main(int argc, char **argv)
{
	struct prng r;

	if (argc != 4) {
		fprintf(stderr, "usage: vectors policies|ops|sequences SEED COUNT\n");
		return 2;
	}
	r.state = strtoull(argv[2], NULL, 0);
	if (!strcmp(argv[1], "policies"))
		policies(&r, strtoull(argv[3], NULL, 0));
	else if (!strcmp(argv[1], "ops"))
		ops(&r, strtoull(argv[3], NULL, 0));
	else
		sequences(&r, strtoull(argv[3], NULL, 0));
	return fflush(stdout) ? 1 : 0;
}
