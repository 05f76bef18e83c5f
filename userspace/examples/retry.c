// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Connect to port 8080 of this machine, by the default policy: five attempts, jittered. */
#include <arpa/inet.h>
#include <kretry.h>
#include <stdio.h>

int main(void)
{
	struct sockaddr_in addr = { AF_INET, htons(8080), { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct kretry_op op = { .flags = KRETRY_OP_IDEMPOTENT };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct kretry_policy policy;
	struct timespec until;
	struct kretry *k;

	kretry_policy_init(&policy);
	if (kretry_open(&k, NULL, 0) || kretry_policy_create(k, &policy))
		return 2;
	op.policy = policy.id;
	do {
		until.tv_sec = op.deadline_ns / 1000000000;	/* 0, and in the past, at first */
		until.tv_nsec = op.deadline_ns % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		op.event = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ?
			   KRETRY_EVENT_TRANSIENT : KRETRY_EVENT_OK;
	} while (kretry_step(k, &op) == 0 && op.verdict == KRETRY_RETRY);
	puts(kretry_verdict_name(op.verdict));
	return op.verdict != KRETRY_DONE;
}
