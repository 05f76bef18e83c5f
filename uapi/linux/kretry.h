/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * kretry: host-wide retry policies, deadlines, budgets and circuit breakers.
 *
 * Open /dev/kretry, register a policy, then keep one struct kretry_op for each operation and
 * pass it to KRETRY_IOC_STEP with what has happened. The answer is a verdict and a deadline.
 *
 * Conventions
 *   _ns    nanoseconds, 0 to KRETRY_NS_MAX
 *   _ppm   parts per million
 *   _utok  micro-tokens, 0 to KRETRY_NS_MAX
 *   [in]   read by the kernel, [out] written by it, [in,out] both
 *   Reserved fields and unknown bits are zero in what a caller passes: EINVAL otherwise.
 *
 * Commands
 *   They are dispatched on _IOC_NR. Except for STEP and SHUTDOWN the argument points to a struct
 *   that starts with its own size, which is authoritative: a newer kernel takes the shorter struct
 *   of an older program, an older kernel takes a longer one whose tail it does not know if that
 *   tail is zero. Outputs go into as much of the struct as both sides know, the rest of the
 *   caller's struct is zeroed and size says how many bytes hold meaning. Layouts are the same for
 *   32-bit and 64-bit callers. A command that fails has changed nothing, unless its text says so.
 *
 * Errors, the same for every command
 *   EFAULT      memory that cannot be read, or written where there is something to write
 *   EINVAL      a size below the first version's, a reserved field or an unknown flag that is not
 *               zero, a value outside its documented range
 *   E2BIG       a size above 4096 bytes, or a tail that this kernel does not know and is not zero
 *   ENOTTY      no such command
 *   EOPNOTSUPP  known, but not in this build: see the feature bits of KRETRY_IOC_INFO
 *   ENOMEM      out of memory, or the caller's memory cgroup is at its limit
 *   ENOENT      no policy of that id on this open file, or no policy, op or wait of that name
 *   EDQUOT      the user (or the owner of a user namespace above) has as many policies as allowed:
 *               each open one counts, and each name its creator has taken
 *   EMSGSIZE    more ops in one call than max_batch
 *   ENOBUFS     as many ops queued on this file as max_queued
 *   EEXIST      a policy of that name exists with other parameters, or that user_data is in use
 *   EACCES      the mode of a global policy does not allow it
 *   EPERM       the command needs a capability, or to be the owner
 *   EBUSY       the policy has queued ops, waits or leases of this file
 *   EINTR       a fatal signal came before the first op was done
 */
#ifndef _UAPI_LINUX_KRETRY_H
#define _UAPI_LINUX_KRETRY_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** KRETRY_ABI_VERSION: version of this ABI; raised only by a change old programs could notice. */
#define KRETRY_ABI_VERSION	1

/** KRETRY_NS_MAX: the largest duration, deadline or amount; as a limit it means "no limit". */
#define KRETRY_NS_MAX		0x7fffffffffffffffULL

/** KRETRY_PPM: one whole, in parts per million. */
#define KRETRY_PPM		1000000U

/** KRETRY_UTOK: one token, in micro-tokens. */
#define KRETRY_UTOK		1000000ULL

/** KRETRY_NO_LIMIT: value of max_retries that allows any number of them. */
#define KRETRY_NO_LIMIT		0xffffffffU

/** KRETRY_TABLE_MAX: entries that the TABLE strategy can hold. */
#define KRETRY_TABLE_MAX	64

/** KRETRY_NAME_MAX: bytes of a policy's name including its terminating NUL. */
#define KRETRY_NAME_MAX		64

/* -------- one operation -------- */

/**
 * enum kretry_event - what the caller reports about an operation
 * @KRETRY_EVENT_NONE:		nothing; invalid, and what the kernel leaves behind on success
 * @KRETRY_EVENT_BEGIN:		an attempt is about to start; may it?
 * @KRETRY_EVENT_OK:		the attempt succeeded
 * @KRETRY_EVENT_CANCELLED:	the operation was given up; counts as nothing
 * @KRETRY_EVENT_TRANSIENT:	refused, reset before sending, connect timeout, HTTP 503
 * @KRETRY_EVENT_THROTTLED:	the server asked for fewer calls, HTTP 429
 * @KRETRY_EVENT_UNKNOWN:	timeout or reset after sending: the work may have been done
 * @KRETRY_EVENT_PERMANENT:	will fail again, most HTTP 4xx
 */
enum kretry_event {
	KRETRY_EVENT_NONE	= 0,
	KRETRY_EVENT_BEGIN	= 1,
	KRETRY_EVENT_OK		= 2,
	KRETRY_EVENT_CANCELLED	= 3,
	KRETRY_EVENT_TRANSIENT	= 4,
	KRETRY_EVENT_THROTTLED	= 5,
	KRETRY_EVENT_UNKNOWN	= 6,
	KRETRY_EVENT_PERMANENT	= 7
};

/**
 * enum kretry_verdict - what the caller is to do
 * @KRETRY_VERDICT_NONE:	never given
 * @KRETRY_GO:			start the attempt at deadline_ns
 * @KRETRY_RETRY:		start the next attempt at deadline_ns (with READMIT: BEGIN then)
 * @KRETRY_DONE:		the operation is over
 * @KRETRY_ERROR:		batch only: this op was malformed, its errno is in flags
 * @KRETRY_STOP_PERMANENT:	the failure was PERMANENT
 * @KRETRY_STOP_UNSAFE:		the failure was UNKNOWN and the operation is not idempotent
 * @KRETRY_STOP_LIMIT:		max_retries retries have been granted
 * @KRETRY_STOP_HINT:		the server said not to retry, or asked for more than hint_limit_ns
 * @KRETRY_STOP_ELAPSED:	the next deadline exceeds start_ns + max_elapsed_ns
 * @KRETRY_STOP_BUDGET:		the retry budget is exhausted
 * @KRETRY_STOP_OPEN:		the circuit breaker is open, or has no probe to give
 * @KRETRY_STOP_COOLING:	the server asked everyone to wait (HINT_SHARED)
 * @KRETRY_STOP_PACED:		the next slot lies beyond the pacing horizon
 *
 * Every verdict from KRETRY_STOP_PERMANENT on says: do not make this attempt.
 */
enum kretry_verdict {
	KRETRY_VERDICT_NONE	= 0,
	KRETRY_GO		= 1,
	KRETRY_RETRY		= 2,
	KRETRY_DONE		= 3,
	KRETRY_ERROR		= 4,
	KRETRY_STOP_PERMANENT	= 16,
	KRETRY_STOP_UNSAFE	= 17,
	KRETRY_STOP_LIMIT	= 18,
	KRETRY_STOP_HINT	= 19,
	KRETRY_STOP_ELAPSED	= 20,
	KRETRY_STOP_BUDGET	= 21,
	KRETRY_STOP_OPEN	= 22,
	KRETRY_STOP_COOLING	= 23,
	KRETRY_STOP_PACED	= 24
};

/*
 * What a WAIT on io_uring completes with when its verdict is a STOP: the negative of these, one for
 * each, so that a link breaks and the reason is still known. 0 is GO, ECANCELED a cancelled wait.
 */
#define KRETRY_ERRNO_STOP_PERMANENT	121	/* EREMOTEIO */
#define KRETRY_ERRNO_STOP_UNSAFE	114	/* EALREADY */
#define KRETRY_ERRNO_STOP_LIMIT		109	/* ETOOMANYREFS */
#define KRETRY_ERRNO_STOP_HINT		78	/* EREMCHG */
#define KRETRY_ERRNO_STOP_ELAPSED	62	/* ETIME */
#define KRETRY_ERRNO_STOP_BUDGET	63	/* ENOSR */
#define KRETRY_ERRNO_STOP_OPEN		112	/* EHOSTDOWN */
#define KRETRY_ERRNO_STOP_COOLING	87	/* EUSERS */
#define KRETRY_ERRNO_STOP_PACED		54	/* EXFULL */

/*
 * Flags of an op. The low byte is the caller's. HINT and NO_RETRY describe one failure: they are
 * allowed with a failure class only, and cleared with event and hint_ns.
 */
#define KRETRY_OP_IDEMPOTENT	0x0001	/* doing the work twice does no harm */
#define KRETRY_OP_HINT		0x0002	/* hint_ns is what the server asked for, 0 included */
#define KRETRY_OP_NO_RETRY	0x0004	/* the server said not to retry */
#define KRETRY_OP_QUEUE		0x0008	/* wait in the kernel, read() returns it when due */
#define KRETRY_OP_AFTER_THROTTLED	0x0010	/* by RETRY, with REFUND_LAST: after THROTTLED */
#define KRETRY_OP_AFTER_UNKNOWN	0x0020	/* likewise, UNKNOWN; tells what a refund returns */
#define KRETRY_OP_IN_MASK	0x00ff

/*
 * The high byte is the kernel's, and ignored on input. With the verdict KRETRY_ERROR it holds an
 * errno instead: KRETRY_OP_ERRNO().
 */
#define KRETRY_OP_READMIT	0x0100	/* send BEGIN again when the deadline has come */
#define KRETRY_OP_SHARED_KEY	0x0200	/* too many keys: this one shares the overflow state */
#define KRETRY_OP_CLAMPED	0x0400	/* sooner than the server asked for, as the policy says */
#define KRETRY_OP_PROBE		0x0800	/* this GO is a probe of a half-open breaker */
#define KRETRY_OP_QUEUED	0x1000	/* it waits in the kernel: read() will return it */
#define KRETRY_OP_ERRNO(flags)	(((flags) >> 8) & 0xff)

/**
 * struct kretry_op - one operation, kept by the caller, in one cache line
 * @policy:	[in] id of a policy on this open file
 * @event:	[in,out] enum kretry_event; zeroed on success, so that a replay is EINVAL
 * @verdict:	[out] enum kretry_verdict
 * @flags:	[in,out] KRETRY_OP_…
 * @key:	[in] the dependency under the policy; any value. To agree with other programs, take
 *		the first 8 bytes, little-endian, of SHA-256 of lower-case "scheme://host:port",
 *		with 0 becoming 1
 * @user_data:	[in] the caller's; with QUEUE unique among the queued ops of the file
 * @hint_ns:	[in,out] delay the server asked for, with HINT only; zeroed on success
 * @attempt:	[in,out] retries granted so far; moved by RETRY, zeroed by DONE, never by a STOP
 * @generation:	[in,out] stamped by BEGIN: which breaker state admitted the attempt; 0 is none
 * @start_ns:	[in,out] when the operation began, on the policy's clock in the caller's time
 *		namespace; 0 before the first event. One in the future counts as now
 * @delay_ns:	[in,out] the delay of the last RETRY; DECORRELATED grows from it; zeroed by DONE
 * @deadline_ns: [in,out] when the attempt may start, on the policy's clock in the caller's time
 *		namespace, never in the past; 0 where a verdict has none
 *
 * Zero it, set policy, key and flags, and pass it back with each event of the operation. It holds
 * all there is to know about an op that is not queued. DONE makes it ready for the next operation,
 * unless an OK came sooner than reset_after_ns after the attempt's start: then attempt, start_ns,
 * delay_ns and deadline_ns stay, and so does the backoff.
 *
 * With QUEUE an attempt that is not to start now waits in the kernel, until deadline_ns; QUEUED
 * says so, and READMIT is then the kernel's task. read() returns it once, as GO or as a STOP,
 * unless KRETRY_IOC_CANCEL takes it back or the file lets go of it. A STOP that comes that late
 * costs no token, and attempt is what it was before the grant.
 */
struct kretry_op {
	__u32		policy;
	__u8		event;
	__u8		verdict;
	__u16		flags;
	__aligned_u64	key;
	__aligned_u64	user_data;
	__aligned_u64	hint_ns;
	__u32		attempt;
	__u32		generation;
	__aligned_u64	start_ns;
	__aligned_u64	delay_ns;
	__aligned_u64	deadline_ns;
};

/* -------- policies -------- */

/**
 * enum kretry_strategy - the ceiling of the delay, from n, the number of retries granted before
 * @KRETRY_FIXED:	 base
 * @KRETRY_LINEAR:	 base * (n + 1)
 * @KRETRY_EXPONENTIAL:	 base * multiplier^n, exact for 2.0, else within 1 ns or 2e-11 of it
 * @KRETRY_DECORRELATED: a delay uniform in [base, min(cap, 3 * previous delay)]
 * @KRETRY_SLOTTED:	 a delay of k * base, k uniform in 0 to 2^min(n + 1, 10) - 1
 * @KRETRY_TABLE:	 table_ns[n], the last entry repeats
 *
 * The ceiling saturates, is capped, and only then jittered.
 */
enum kretry_strategy {
	KRETRY_FIXED		= 1,
	KRETRY_LINEAR		= 2,
	KRETRY_EXPONENTIAL	= 3,
	KRETRY_DECORRELATED	= 4,
	KRETRY_SLOTTED		= 5,
	KRETRY_TABLE		= 6
};

/**
 * enum kretry_jitter - the delay, from its ceiling c
 * @KRETRY_JITTER_NONE:		c; the only one for DECORRELATED and SLOTTED, which draw anyway
 * @KRETRY_JITTER_FULL:		uniform in [floor, c]
 * @KRETRY_JITTER_EQUAL:	c/2 + uniform in [0, c/2]
 * @KRETRY_JITTER_PROPORTIONAL:	uniform in a window of width 2rc around c, slid down so that it
 *				ends at or under the cap; r is jitter_ppm, at most 1.0
 * @KRETRY_JITTER_ADDITIVE:	uniform in [c, c + rc], slid down likewise
 */
enum kretry_jitter {
	KRETRY_JITTER_NONE		= 0,
	KRETRY_JITTER_FULL		= 1,
	KRETRY_JITTER_EQUAL		= 2,
	KRETRY_JITTER_PROPORTIONAL	= 3,
	KRETRY_JITTER_ADDITIVE		= 4
};

/**
 * struct kretry_backoff - how long to wait before a retry
 * @strategy:		enum kretry_strategy
 * @jitter:		enum kretry_jitter
 * @table_len:		entries in table_ns: 1 to KRETRY_TABLE_MAX with TABLE, else 0
 * @reserved:		0
 * @multiplier_ppm:	with EXPONENTIAL at least KRETRY_PPM, else 0
 * @jitter_ppm:		with PROPORTIONAL 0 to KRETRY_PPM, with ADDITIVE any value, else 0
 * @reserved2:		0
 * @base_ns:		the first delay, 0 to cap_ns; not 0 with SLOTTED; 0 with TABLE
 * @base_throttled_ns:	when not 0, takes the place of base_ns after THROTTLED; at most cap_ns;
 *			0 with TABLE
 * @cap_ns:		no delay is above it; KRETRY_NS_MAX for none
 * @floor_ns:		no delay is below it; at most cap_ns. With SLOTTED its next multiple of the
 *			base is at most cap_ns
 * @table_ns:		with TABLE delays that never decrease, the first at most cap_ns; zero after
 *			the first table_len
 */
struct kretry_backoff {
	__u8		strategy;
	__u8		jitter;
	__u8		table_len;
	__u8		reserved;
	__u32		multiplier_ppm;
	__u32		jitter_ppm;
	__u32		reserved2;
	__aligned_u64	base_ns;
	__aligned_u64	base_throttled_ns;
	__aligned_u64	cap_ns;
	__aligned_u64	floor_ns;
	__aligned_u64	table_ns[KRETRY_TABLE_MAX];
};

/* flags of struct kretry_budget */
#define KRETRY_BUDGET_REFUND_LAST	0x1	/* the cost of the last retry returns on success */

/**
 * struct kretry_budget - a token bucket that bounds retries to a share of the traffic
 * @capacity_utok:		most the bucket holds; 0 is no budget, and all else is 0 then
 * @initial_utok:		what the reserve starts with, at most the capacity
 * @reserve_cap_utok:		the reserve refills up to here, at most the capacity
 * @refill_utok_per_s:		refill of the reserve
 * @deposit_request_utok:	deposited by the first BEGIN of an operation
 * @deposit_first_success_utok:	deposited by success of a first attempt
 * @deposit_retry_success_utok:	deposited by success of a retry
 * @drain_per_failure_utok:	taken by each failure but PERMANENT, whatever the verdict, down to 0
 * @cost_transient_utok:	cost of a retry after TRANSIENT
 * @cost_throttled_utok:	cost of a retry after THROTTLED
 * @cost_unknown_utok:		cost of a retry after UNKNOWN
 * @admit_above_utok:		when not 0, a retry also needs a balance above this
 * @window_ns:			deposits lapse after this long, at least 10; 0 is never, they join
 *				the reserve
 * @max_retrying:		retries outstanding at one time; 0 is no limit
 * @retrying_ppm:		the same as a share of the calls outstanding; 0 is no limit
 * @flags:			KRETRY_BUDGET_…
 * @reserved:			0
 */
struct kretry_budget {
	__aligned_u64	capacity_utok;
	__aligned_u64	initial_utok;
	__aligned_u64	reserve_cap_utok;
	__aligned_u64	refill_utok_per_s;
	__aligned_u64	deposit_request_utok;
	__aligned_u64	deposit_first_success_utok;
	__aligned_u64	deposit_retry_success_utok;
	__aligned_u64	drain_per_failure_utok;
	__aligned_u64	cost_transient_utok;
	__aligned_u64	cost_throttled_utok;
	__aligned_u64	cost_unknown_utok;
	__aligned_u64	admit_above_utok;
	__aligned_u64	window_ns;
	__u32		max_retrying;
	__u32		retrying_ppm;
	__u32		flags;
	__u32		reserved;
};

/**
 * enum kretry_throttled_as - what THROTTLED counts as in a breaker
 * @KRETRY_THROTTLED_IGNORED:	nothing
 * @KRETRY_THROTTLED_SUCCESS:	a success: the server is alive
 * @KRETRY_THROTTLED_FAILURE:	a failure
 */
enum kretry_throttled_as {
	KRETRY_THROTTLED_IGNORED	= 0,
	KRETRY_THROTTLED_SUCCESS	= 1,
	KRETRY_THROTTLED_FAILURE	= 2
};

/* flags of struct kretry_breaker */
#define KRETRY_BREAKER_REPORTERS_UID	0x1	/* min_reporters counts users, not processes */
#define KRETRY_BREAKER_METRICS_ONLY	0x2	/* counts and changes state, but refuses nobody */

/**
 * struct kretry_breaker - when to stop calling a dependency, and how to come back
 * @consecutive:	opens at this many failures in a row, at most 65535; 0 disables the rule
 * @min_calls:		the ratio rules need this many results in the window, at most what it holds
 *			for certain: window_calls in whole tenths, or 32768 with window_ns; 0 is 1
 * @ratio_ppm:		opens at this share of failures in the window; 0 disables the rule
 * @slow_ppm:		opens at this share of slow calls in the window; 0 disables the rule
 * @half_open_ppm:	when not 0, half-open is judged after all probes by this share of failures
 * @open_growth_ppm:	open time is multiplied by this while probes keep failing; 0 is KRETRY_PPM
 * @open_jitter_ppm:	open time is lengthened by up to this share of it, at most 0.5; at the cap
 *			it is shortened instead
 * @window_calls:	the window rotates after this many results, 10 to 655350; 0 uses window_ns
 * @probes:		attempts admitted at one time while half-open, host-wide, at most 255; 0 is
 *			no breaker, and all else is 0 then
 * @successes_to_close:	successes while half-open that close it, at most 255; 0 is 1
 * @min_reporters:	failures must come from this many processes, 1 to 8; 0 is 1
 * @throttled:		enum kretry_throttled_as, while closed
 * @throttled_half_open: enum kretry_throttled_as, while half-open
 * @reserved:		0
 * @flags:		KRETRY_BREAKER_…
 * @open_ns:		open time; not 0
 * @open_cap_ns:	most it grows to, at least open_ns
 * @window_ns:		the window's length, at least 10. A ratio rule and min_reporters above 1
 *			need this or window_calls, and nothing else may have it
 * @probe_timeout_ns:	a probe not reported for this long after its deadline is lost; not 0
 * @slow_ns:		a call that took longer is slow; a slow probe has failed
 * @ramp_ns:		after closing, admission grows to all over this long; 0 is at once
 */
struct kretry_breaker {
	__u32		consecutive;
	__u32		min_calls;
	__u32		ratio_ppm;
	__u32		slow_ppm;
	__u32		half_open_ppm;
	__u32		open_growth_ppm;
	__u32		open_jitter_ppm;
	__u32		window_calls;
	__u32		probes;
	__u32		successes_to_close;
	__u8		min_reporters;
	__u8		throttled;
	__u8		throttled_half_open;
	__u8		reserved;
	__u32		flags;
	__aligned_u64	open_ns;
	__aligned_u64	open_cap_ns;
	__aligned_u64	window_ns;
	__aligned_u64	probe_timeout_ns;
	__aligned_u64	slow_ns;
	__aligned_u64	ramp_ns;
};

/**
 * struct kretry_pacing - the least spacing, host-wide, between two attempts of one key
 * @pace_ns:	the spacing; 0 is no pacing. Retries are paced, with PACE_ALL every attempt
 * @horizon_ns:	a slot further away than this is STOP_PACED
 */
struct kretry_pacing {
	__aligned_u64	pace_ns;
	__aligned_u64	horizon_ns;
};

/* flags of a policy: part of its parameters */
#define KRETRY_POLICY_ASSUME_IDEMPOTENT	0x01	/* every operation is idempotent */
#define KRETRY_POLICY_HINT_CLAMP	0x02	/* a hint above hint_limit_ns is cut down to it */
#define KRETRY_POLICY_HINT_MAX		0x04	/* never sooner than the own delay either */
#define KRETRY_POLICY_HINT_EXACT	0x08	/* the hint as it is, however short: no spread */
#define KRETRY_POLICY_HINT_SHARED	0x10	/* a hint cools the key for the whole host */
#define KRETRY_POLICY_WAIT_OPEN		0x20	/* retries wait while the breaker is open */
#define KRETRY_POLICY_PACE_ALL		0x40	/* pacing counts first attempts too */

/* flags of an opening: of this call, not of the policy */
#define KRETRY_OPEN_GLOBAL		0x01	/* the name is the host's, with uid, gid and mode */
#define KRETRY_OPEN_NOTIFY		0x02	/* POLLPRI when a breaker of the policy changes */

/**
 * struct kretry_policy - argument of KRETRY_IOC_POLICY_CREATE and KRETRY_IOC_POLICY_GET
 * @size:		[in,out] size of this struct
 * @id:			CREATE: [out] the policy's id on this open file; 1 or more, not soon
 *			reused. GET: [in]
 * @flags:		KRETRY_POLICY_…
 * @open_flags:		CREATE: [in] KRETRY_OPEN_…; GET: [out]
 * @clockid:		1 (CLOCK_MONOTONIC) or 7 (CLOCK_BOOTTIME, goes on during suspend)
 * @max_retries:	retries after the first attempt; KRETRY_NO_LIMIT for any number
 * @uid:		owner of a GLOBAL policy, as the caller's user namespace has it
 * @gid:		group of a GLOBAL policy
 * @mode:		permissions of a GLOBAL policy: read is query, write is step
 * @reserved:		0
 * @linger_ns:		how long a named policy outlives its last opener
 * @name:		padded with NUL; empty for a policy that belongs to this open file
 * @max_elapsed_ns:	no retry starts later than this after start_ns; 0 is no limit
 * @reset_after_ns:	an OK sooner than this after the attempt's start keeps the backoff; 0 is
 *			never
 * @slack_ns:		how much later than its deadline a queued op may be delivered
 * @hint_limit_ns:	a hint above it is STOP_HINT, or cut down with HINT_CLAMP; 0 is no limit
 * @hint_over_own_ns:	the wait is at most the own delay and this; 0 is no limit
 * @backoff:		delay
 * @budget:		budget
 * @breaker:		breaker
 * @pacing:		pacing
 *
 * All but size, id and open_flags is [in] for CREATE and [out] for GET. A policy never changes.
 */
struct kretry_policy {
	__u32			size;
	__u32			id;
	__u32			flags;
	__u32			open_flags;
	__u32			clockid;
	__u32			max_retries;
	__u32			uid;
	__u32			gid;
	__u32			mode;
	__u32			reserved;
	__aligned_u64		linger_ns;
	__u8			name[KRETRY_NAME_MAX];
	__aligned_u64		max_elapsed_ns;
	__aligned_u64		reset_after_ns;
	__aligned_u64		slack_ns;
	__aligned_u64		hint_limit_ns;
	__aligned_u64		hint_over_own_ns;
	struct kretry_backoff	backoff;
	struct kretry_budget	budget;
	struct kretry_breaker	breaker;
	struct kretry_pacing	pacing;
};

/**
 * struct kretry_policy_ref - argument of KRETRY_IOC_POLICY_OPEN, _CLOSE and _UNLINK
 * @size:	OPEN: [in,out] size of this struct; CLOSE, UNLINK: [in], nothing is written back
 * @id:		OPEN: [out] the policy's id on this open file; CLOSE: [in]; UNLINK: 0
 * @open_flags:	OPEN, UNLINK: [in] KRETRY_OPEN_…; CLOSE: 0
 * @reserved:	0
 * @name:	OPEN, UNLINK: [in] the name, padded with NUL; CLOSE: all NUL
 */
struct kretry_policy_ref {
	__u32	size;
	__u32	id;
	__u32	open_flags;
	__u32	reserved;
	__u8	name[KRETRY_NAME_MAX];
};

/**
 * struct kretry_policy_entry - one named policy in KRETRY_IOC_POLICY_LIST
 * @open_flags:	KRETRY_OPEN_GLOBAL or 0
 * @uid:	owner, as the caller's user namespace has it
 * @gid:	group
 * @mode:	permissions
 * @openers:	open files that hold it; 0 while it lingers
 * @keys:	keys that have state
 * @name:	padded with NUL
 */
struct kretry_policy_entry {
	__u32	open_flags;
	__u32	uid;
	__u32	gid;
	__u32	mode;
	__u32	openers;
	__u32	keys;
	__u8	name[KRETRY_NAME_MAX];
};

/**
 * struct kretry_policy_list - argument of KRETRY_IOC_POLICY_LIST
 * @size:	[in,out] size of this struct
 * @entry_size:	[in] size of one entry in the caller's array
 * @entries:	[in] pointer to an array of struct kretry_policy_entry
 * @count:	[in] entries that fit; [out] entries there are
 * @reserved:	0
 */
struct kretry_policy_list {
	__u32		size;
	__u32		entry_size;
	__aligned_u64	entries;
	__u32		count;
	__u32		reserved;
};

/* -------- the other commands -------- */

/* feature bits of struct kretry_info */
#define KRETRY_FEATURE_NAMED		0x0001ULL	/* named policies: OPEN, UNLINK, LIST */
#define KRETRY_FEATURE_BUDGET		0x0002ULL	/* struct kretry_budget */
#define KRETRY_FEATURE_RETRYING		0x0004ULL	/* its max_retrying and retrying_ppm */
#define KRETRY_FEATURE_BREAKER		0x0008ULL	/* struct kretry_breaker, FORCE */
#define KRETRY_FEATURE_PACING		0x0010ULL	/* struct kretry_pacing */
#define KRETRY_FEATURE_COOLING		0x0020ULL	/* HINT_SHARED */
#define KRETRY_FEATURE_STAT		0x0040ULL	/* STAT, NOTIFY */
#define KRETRY_FEATURE_QUEUE		0x0080ULL	/* QUEUE, read(), poll(), CANCEL */
#define KRETRY_FEATURE_URING_STEP	0x0100ULL	/* STEP as an io_uring command */
#define KRETRY_FEATURE_URING_WAIT	0x0200ULL	/* WAIT as an io_uring command */

/**
 * struct kretry_info - argument of KRETRY_IOC_INFO
 * @size:		[in,out] size of this struct
 * @abi_version:	[out] KRETRY_ABI_VERSION of the module
 * @features:		[out] KRETRY_FEATURE_…
 * @max_batch:		[out] most ops in one STEP_BATCH
 * @max_policies:	[out] most policies of one user
 * @max_keys:		[out] most keys of one policy; 0 where nothing is kept by key
 * @max_queued:		[out] most ops queued on one file; 0 where none can be
 * @max_linger_ns:	[out] longest linger_ns; 0 where there are no named policies
 */
struct kretry_info {
	__u32		size;
	__u32		abi_version;
	__aligned_u64	features;
	__u32		max_batch;
	__u32		max_policies;
	__u32		max_keys;
	__u32		max_queued;
	__aligned_u64	max_linger_ns;
};

/**
 * struct kretry_batch - argument of KRETRY_IOC_STEP_BATCH
 * @size:	[in] size of this struct; nothing is written to it
 * @flags:	[in] 0
 * @ops:	[in] pointer to an array of struct kretry_op
 * @count:	[in] ops in it, at most max_batch; 0 does nothing
 * @op_size:	[in] sizeof(struct kretry_op)
 *
 * Each op is answered by itself. A malformed one gets the verdict KRETRY_ERROR and its errno in
 * the high byte of flags; nothing else of it changes and the others go on.
 */
struct kretry_batch {
	__u32		size;
	__u32		flags;
	__aligned_u64	ops;
	__u32		count;
	__u32		op_size;
};

/**
 * struct kretry_uring - the 16 bytes of payload in the SQE of an io_uring command
 * @ops:	pointer to an array of struct kretry_op; CANCEL: to one struct kretry_cancel
 * @count:	ops in it, at most max_batch; 1 for WAIT and CANCEL
 * @op_size:	sizeof(struct kretry_op); CANCEL: size of struct kretry_cancel
 * @flags:	0
 *
 * cmd_op of the SQE is KRETRY_IOC_STEP, KRETRY_IOC_WAIT or KRETRY_IOC_CANCEL.
 *
 * STEP completes with the number of ops answered, as STEP_BATCH returns it.
 *
 * WAIT takes one op with BEGIN or a failure class and without QUEUE. It is decided and written when
 * the command is issued, and never touched again; its user_data is that of the op, not of the SQE,
 * and unique among the queued ops and waits of the file. The command completes with 0 when the
 * attempt may start, with -KRETRY_ERRNO_STOP_… if it must not, at once or when the time had come,
 * with -ECANCELED if it was cancelled or the file or the ring let go of it. The last two cost no
 * token. Any other error came before anything was decided. After 0 the attempt starts now: set
 * deadline_ns to the time then where the policy judges slow calls, since a paced attempt, or one
 * that waited for the breaker, starts later than written. One that has become a probe does not have
 * PROBE in its flags; its report gives the probe back all the same. After an error at the deadline
 * attempt is one too high, should the op be used again.
 */
struct kretry_uring {
	__aligned_u64	ops;
	__u32		count;
	__u16		op_size;
	__u16		flags;
};

/**
 * struct kretry_cancel - argument of KRETRY_IOC_CANCEL
 * @size:	[in,out] size of this struct
 * @flags:	[in] 0
 * @user_data:	[in] of the queued op or the wait
 * @op:		[out] the op, with attempt as it was before its grant and without a verdict
 *
 * The charge of its grant goes back to the budget. A wait completes with -ECANCELED. ENOENT says
 * that it is not there: delivered, on its way to be, or never queued.
 */
struct kretry_cancel {
	__u32			size;
	__u32			flags;
	__aligned_u64		user_data;
	struct kretry_op	op;
};

/**
 * enum kretry_mode - what an operator wants of a breaker
 * @KRETRY_MODE_AUTOMATIC:	it follows its rules
 * @KRETRY_MODE_FORCED_OPEN:	it refuses everyone
 * @KRETRY_MODE_FORCED_CLOSED:	it admits everyone and counts nothing
 * @KRETRY_MODE_METRICS_ONLY:	it follows its rules and refuses nobody
 */
enum kretry_mode {
	KRETRY_MODE_AUTOMATIC		= 0,
	KRETRY_MODE_FORCED_OPEN		= 1,
	KRETRY_MODE_FORCED_CLOSED	= 2,
	KRETRY_MODE_METRICS_ONLY	= 3
};

/**
 * enum kretry_state - state of a breaker
 * @KRETRY_CLOSED:	calls pass
 * @KRETRY_OPEN:	calls are refused
 * @KRETRY_HALF_OPEN:	probes pass
 */
enum kretry_state {
	KRETRY_CLOSED		= 0,
	KRETRY_OPEN		= 1,
	KRETRY_HALF_OPEN	= 2
};

/* flags of struct kretry_stat and struct kretry_force */
#define KRETRY_SCOPE_KEY	0x1	/* one key; else the policy and all its keys */

/**
 * struct kretry_stat - argument of KRETRY_IOC_STAT
 * @size:		[in,out] size of this struct
 * @policy:		[in] id of a policy on this open file
 * @flags:		[in] KRETRY_SCOPE_KEY or 0
 * @keys:		[out] keys that have state
 * @key:		[in] with KRETRY_SCOPE_KEY, else 0
 * @events:		[out] events taken, by enum kretry_event
 * @go:			[out] GO verdicts
 * @retry:		[out] RETRY verdicts
 * @done:		[out] DONE verdicts
 * @stops:		[out] STOP verdicts, from KRETRY_STOP_PERMANENT on
 * @charged_utok:	[out] tokens charged
 * @refunded_utok:	[out] tokens given back
 * @balance_utok:	[out] tokens held, with KRETRY_SCOPE_KEY
 * @opened:		[out] times a breaker opened
 * @transitions:	[out] changes of a breaker's state; reading it settles POLLPRI
 * @evicted:		[out] keys forgotten to make room
 * @probes_lost:	[out] probes that never reported
 * @queued:		[out] ops queued
 * @leases:		[out] probes outstanding
 * @state:		[out] enum kretry_state, with KRETRY_SCOPE_KEY
 * @mode:		[out] enum kretry_mode
 * @streak:		[out] failures in a row, with KRETRY_SCOPE_KEY
 * @window_calls:	[out] results in the window, with KRETRY_SCOPE_KEY
 * @window_failures:	[out] failures in the window, with KRETRY_SCOPE_KEY
 * @reserved:		[in] 0
 * @half_open_ns:	[out] when an open breaker lets a probe pass, with KRETRY_SCOPE_KEY
 * @cooling_ns:		[out] when cooling ends, with KRETRY_SCOPE_KEY
 * @pace_next_ns:	[out] the next free slot, with KRETRY_SCOPE_KEY
 * @redrawn:	[out] queued ops and waits put off by a new draw after the machine was cloned
 * @spread:	[out] queued ops and waits that fell due in a suspend and were spread out after it
 */
struct kretry_stat {
	__u32		size;
	__u32		policy;
	__u32		flags;
	__u32		keys;
	__aligned_u64	key;
	__aligned_u64	events[8];
	__aligned_u64	go;
	__aligned_u64	retry;
	__aligned_u64	done;
	__aligned_u64	stops[16];
	__aligned_u64	charged_utok;
	__aligned_u64	refunded_utok;
	__aligned_u64	balance_utok;
	__aligned_u64	opened;
	__aligned_u64	transitions;
	__aligned_u64	evicted;
	__aligned_u64	probes_lost;
	__u32		queued;
	__u32		leases;
	__u32		state;
	__u32		mode;
	__u32		streak;
	__u32		window_calls;
	__u32		window_failures;
	__u32		reserved;
	__aligned_u64	half_open_ns;
	__aligned_u64	cooling_ns;
	__aligned_u64	pace_next_ns;
	__aligned_u64	redrawn;
	__aligned_u64	spread;
};

/**
 * struct kretry_force - argument of KRETRY_IOC_FORCE
 * @size:	[in] size of this struct
 * @policy:	[in] id of a policy on this open file
 * @flags:	[in] KRETRY_SCOPE_KEY or 0
 * @mode:	[in] enum kretry_mode
 * @key:	[in] with KRETRY_SCOPE_KEY, else 0
 */
struct kretry_force {
	__u32		size;
	__u32		policy;
	__u32		flags;
	__u32		mode;
	__aligned_u64	key;
};

#define KRETRY_IOC_MAGIC	0xd9

/**
 * DOC: commands
 *
 * ======================= =================================================================
 * KRETRY_IOC_INFO         struct kretry_info: version, features and limits. No errors of its own
 * KRETRY_IOC_POLICY_CREATE struct kretry_policy: a new policy, or the existing one of that name.
 *                         EDQUOT, EEXIST, EPERM, ENOMEM
 * KRETRY_IOC_POLICY_OPEN  struct kretry_policy_ref: an existing policy by name. ENOENT, EACCES
 * KRETRY_IOC_POLICY_GET   struct kretry_policy: parameters by id. ENOENT
 * KRETRY_IOC_POLICY_CLOSE struct kretry_policy_ref: forget an id. ENOENT, EBUSY
 * KRETRY_IOC_POLICY_UNLINK struct kretry_policy_ref: free a name. ENOENT, EPERM
 * KRETRY_IOC_POLICY_LIST  struct kretry_policy_list: the names the caller may see
 * KRETRY_IOC_STEP         struct kretry_op, always 64 bytes: report an event, get a verdict.
 *                         ENOENT, ENOBUFS, EEXIST
 * KRETRY_IOC_STEP_BATCH   struct kretry_batch: many of them. Returns the number of ops from the
 *                         first on that were answered and written back whole; fewer than count
 *                         after a fault or a fatal signal. EMSGSIZE, EINTR
 * KRETRY_IOC_WAIT         io_uring only: grant, sleep and complete at the deadline. ENOENT,
 *                         ENOBUFS, EEXIST, ECANCELED, KRETRY_ERRNO_STOP_…
 * KRETRY_IOC_CANCEL       struct kretry_cancel: take a queued op or a wait back. ENOENT
 * KRETRY_IOC_STAT         struct kretry_stat: counters and state. ENOENT
 * KRETRY_IOC_FORCE        struct kretry_force: operate a breaker. ENOENT, EPERM
 * KRETRY_IOC_SHUTDOWN     no argument (0): drop all that this file holds, queued ops, waits and
 *                         policies included; the file stays open and usable
 * ======================= =================================================================
 *
 * read() returns queued ops that are due, in the order of their deadlines, as many as fit. Each is
 * admitted as BEGIN would: GO, or a STOP. One that is not to start yet, since a slot of the pacing
 * lies ahead or, under WAIT_OPEN, the breaker is open, waits on: so a file that poll() says is
 * readable may still have nothing to give. EINVAL for a buffer smaller than one op, EAGAIN with
 * O_NONBLOCK, EINTR. poll(): POLLIN when an op is due, POLLPRI with KRETRY_OPEN_NOTIFY.
 */
#define KRETRY_IOC_INFO			_IO(KRETRY_IOC_MAGIC, 0x00)
#define KRETRY_IOC_POLICY_CREATE	_IO(KRETRY_IOC_MAGIC, 0x01)
#define KRETRY_IOC_POLICY_OPEN		_IO(KRETRY_IOC_MAGIC, 0x02)
#define KRETRY_IOC_POLICY_GET		_IO(KRETRY_IOC_MAGIC, 0x03)
#define KRETRY_IOC_POLICY_CLOSE		_IO(KRETRY_IOC_MAGIC, 0x04)
#define KRETRY_IOC_POLICY_UNLINK	_IO(KRETRY_IOC_MAGIC, 0x05)
#define KRETRY_IOC_POLICY_LIST		_IO(KRETRY_IOC_MAGIC, 0x06)
#define KRETRY_IOC_STEP			_IO(KRETRY_IOC_MAGIC, 0x07)
#define KRETRY_IOC_STEP_BATCH		_IO(KRETRY_IOC_MAGIC, 0x08)
#define KRETRY_IOC_WAIT			_IO(KRETRY_IOC_MAGIC, 0x09)
#define KRETRY_IOC_CANCEL		_IO(KRETRY_IOC_MAGIC, 0x0a)
#define KRETRY_IOC_STAT			_IO(KRETRY_IOC_MAGIC, 0x0b)
#define KRETRY_IOC_FORCE		_IO(KRETRY_IOC_MAGIC, 0x0c)
#define KRETRY_IOC_SHUTDOWN		_IO(KRETRY_IOC_MAGIC, 0x0d)

#endif /* _UAPI_LINUX_KRETRY_H */
