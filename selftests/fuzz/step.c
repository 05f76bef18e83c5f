// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Decisions. A line KEY=VALUE sets a parameter of the policy, a line of numbers is an op: event,
 * flags, key, attempt, hint, start and delay. They follow each other on one handle.
 */
#include "fuzz.h"

#include <inttypes.h>

#include "complaints.h"

static bool read_op(const char *line, struct kretry_op *op)
{
	uint64_t n[7] = { 0 };

	if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6) < 1)
		return false;
	op->event = (uint8_t)n[0];
	op->flags = (uint16_t)(n[1] & ~(uint64_t)KRETRY_OP_QUEUE);
	op->key = n[2];
	op->attempt = (uint32_t)n[3];
	op->hint_ns = n[4];
	op->start_ns = n[5];
	op->delay_ns = n[6];
	return true;
}

static void ensure_retry(const struct kretry_policy *p, const struct kretry_op *before,
			 const struct kretry_op *op, uint64_t now)
{
	bool own = !(before->flags & KRETRY_OP_HINT) && !p->breaker.open_ns &&
		   !p->pacing.pace_ns && !(p->flags & KRETRY_POLICY_HINT_SHARED);

	ENSURE(op->attempt == before->attempt + (before->attempt < UINT32_MAX));
	ENSURE(p->max_retries == KRETRY_NO_LIMIT || before->attempt < p->max_retries);
	ENSURE(op->deadline_ns >= now && op->deadline_ns <= KRETRY_NS_MAX);
	ENSURE(op->delay_ns <= KRETRY_NS_MAX && op->start_ns <= op->deadline_ns);
	if (own)
		ENSURE(op->delay_ns >= p->backoff.floor_ns && op->delay_ns <= p->backoff.cap_ns);
}

static void step(struct kretry *k, const struct kretry_policy *p, struct kretry_op op)
{
	struct kretry_op before;
	uint64_t now;
	int ret;

	op.policy = p->id;
	before = op;
	now = kretry_now((clockid_t)p->clockid);
	ret = kretry_step(k, &op);
	ENSURE(ret == 0 || ret == -EINVAL);
	if (ret) {
		ENSURE(!memcmp(&op, &before, sizeof(op)));
		return;
	}
	ENSURE(op.verdict >= KRETRY_GO && op.verdict <= KRETRY_STOP_PACED);
	ENSURE(op.verdict != KRETRY_ERROR && !op.event && !op.hint_ns && op.key == before.key);
	if (kretry_is_stop(op.verdict))
		ENSURE(op.attempt == before.attempt);
	if (op.verdict == KRETRY_RETRY)
		ensure_retry(p, &before, &op, now);
}

static void ensure_budget(struct kretry *k, const struct kretry_policy *p, uint64_t key)
{
	struct kretry_stat stat = { .policy = p->id, .flags = KRETRY_SCOPE_KEY, .key = key };

	ENSURE(!kretry_stat(k, &stat));
	ENSURE(stat.balance_utok <= p->budget.capacity_utok);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size), *save, *line;
	struct kretry_op ops[64] = { 0 };
	struct problem problem;
	struct draft draft;
	struct kretry *k;
	int count = 0, i;

	draft_init(&draft);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!(count < 64 && read_op(line, &ops[count]) && ++count))
			draft_set_pair(&draft, line, &problem);
	free(text);
	draft.policy.name[0] = '\0';
	if (!draft_finish(&draft, &problem))
		return 0;
	ENSURE(!kretry_open(&k, NULL, KRETRY_PROCESS_ONLY));
	if (!kretry_policy_create(k, &draft.policy)) {
		for (i = 0; i < count; i++) {
			step(k, &draft.policy, ops[i]);
			ensure_budget(k, &draft.policy, ops[i].key);
		}
	}
	kretry_close(k);
	return 0;
}
