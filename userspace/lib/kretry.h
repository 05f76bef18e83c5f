/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libkretry: retry policies, verdicts and deadlines from /dev/kretry, and a scheduler that sleeps
 * to those deadlines on io_uring.
 *
 * Functions return 0 (or what their text says) or a negative errno. Where the module is not there,
 * the same decision code runs in the process: kretry_backend() says which, kretry_backend_reason()
 * why. A handle may be used by many threads at once; a scheduler and its tasks belong to one.
 */
#ifndef KRETRY_H
#define KRETRY_H

#include <liburing.h>
#include <linux/kretry.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kretry;
struct kretry_sched;
struct kretry_task;

/* -------- the handle -------- */

#define KRETRY_DEVICE		"/dev/kretry"

/* flags of kretry_open() */
#define KRETRY_MODULE_ONLY	0x1	/* fail where the module cannot be used */
#define KRETRY_PROCESS_ONLY	0x2	/* do not even look for the module */

/* who decides */
enum kretry_backend {
	KRETRY_BACKEND_MODULE,	/* the kernel module, through its device */
	KRETRY_BACKEND_PROCESS	/* the same code in this process */
};

/*
 * Open @path (NULL: KRETRY_DEVICE). Without KRETRY_MODULE_ONLY a missing or unusable device is no
 * error. Errors: EINVAL for unknown or contradicting flags, ENOMEM; with KRETRY_MODULE_ONLY what
 * open(2) says, ENOTTY if the file is another device, EPROTO for an ABI this library cannot speak.
 */
int kretry_open(struct kretry **kp, const char *path, unsigned int flags);

/* Close the handle and with it every policy it registered. NULL is allowed. */
void kretry_close(struct kretry *k);

/* The device's file descriptor, or -EBADF where the process decides. */
int kretry_fd(const struct kretry *k);

enum kretry_backend kretry_backend(const struct kretry *k);

/* One line for a person: why the module is not in use; "" where it is. Lives as long as @k. */
const char *kretry_backend_reason(const struct kretry *k);

/* Version, features and limits. @info->size need not be set. */
int kretry_info(struct kretry *k, struct kretry_info *info);

/* Drop everything the handle holds, policies included; it stays usable. */
int kretry_shutdown(struct kretry *k);

/* -------- policies -------- */

/*
 * A policy to start from: CLOCK_MONOTONIC, exponential from 100 ms by 2.0 up to 20 s with full
 * jitter, 4 retries, no limit in time, hints up to 60 s.
 */
void kretry_policy_init(struct kretry_policy *policy);

/*
 * Register @policy; its id is then in @policy->id. With a name it is shared: the existing policy of
 * that name, if its parameters are the same, or a new one. Errors: EINVAL for parameters outside
 * their documented range, EOPNOTSUPP for parts this build does not have, EEXIST for other
 * parameters under that name, EACCES where its mode lets the caller do nothing, EPERM, EDQUOT,
 * ENOMEM.
 *
 * Where the process decides, names are those of the process: shared by its handles and threads, and
 * copied by fork(). From then on parent and child have each their own budgets and breakers.
 */
int kretry_policy_create(struct kretry *k, struct kretry_policy *policy);

/*
 * Open the policy @name; its id is then in @id. @open_flags is of KRETRY_OPEN_GLOBAL and _NOTIFY.
 * Errors: ENOENT, EACCES, EINVAL for a name that is empty or too long, EDQUOT, ENOMEM.
 */
int kretry_policy_open(struct kretry *k, const char *name, unsigned int open_flags, uint32_t *id);

/* Free the name; those who hold the policy keep it. Errors: ENOENT, EPERM, EINVAL. */
int kretry_policy_unlink(struct kretry *k, const char *name, unsigned int open_flags);

/* The named policies that the caller may see, in an array for the caller to free(). */
int kretry_policy_list(struct kretry *k, struct kretry_policy_entry **entries, unsigned int *count);

/* Read the parameters of policy @id. Errors: ENOENT, EACCES. */
int kretry_policy_get(struct kretry *k, uint32_t id, struct kretry_policy *policy);

/* Forget policy @id. Errors: ENOENT, EBUSY where this handle has probes, queued ops or waits. */
int kretry_policy_close(struct kretry *k, uint32_t id);

/*
 * The parameters of another system: kretry_preset_name(0), (1), … until NULL. Errors: ENOENT.
 * kretry-presets(7) says what is the same as there and what differs.
 */
int kretry_preset(const char *name, struct kretry_policy *policy);
const char *kretry_preset_name(unsigned int i);

/*
 * The key of a dependency, which other programs find too: the first 8 bytes, little-endian, of
 * SHA-256 of @origin, "scheme://host:port", in lower case; 1 where that is 0.
 */
uint64_t kretry_key(const char *origin);

/*
 * Counters of the policy @stat->policy or, with KRETRY_SCOPE_KEY in @stat->flags, the state of
 * @stat->key. Errors: ENOENT, EACCES, EINVAL.
 */
int kretry_stat(struct kretry *k, struct kretry_stat *stat);

/*
 * Have the breaker of @force->policy, or of one key of it, do as @force->mode says. Errors: ENOENT,
 * EPERM, EINVAL, ENOMEM.
 */
int kretry_force(struct kretry *k, struct kretry_force *force);

/* -------- decisions -------- */

/*
 * Report @op->event, get @op->verdict and @op->deadline_ns. On an error @op is unchanged. Errors:
 * EINVAL for a malformed op, ENOENT for an unknown policy, EACCES for one whose mode lets the
 * caller only look; with KRETRY_OP_QUEUE also EEXIST for a user_data that is queued already,
 * ENOBUFS for max_queued ops, and those of the queue, below.
 * Other failures of the module are answered by the process, with its own state, unless the op is to
 * be queued.
 */
int kretry_step(struct kretry *k, struct kretry_op *op);

/*
 * The same for @count ops. Returns how many were answered, from the first on; a malformed one gets
 * the verdict KRETRY_ERROR. Errors: EMSGSIZE for more than max_batch, EFAULT, EINTR for a fatal
 * signal, EBUSY for KRETRY_OP_QUEUE where a scheduler has the queue.
 */
int kretry_step_batch(struct kretry *k, struct kretry_op *ops, unsigned int count);

/* Now in ns on CLOCK_MONOTONIC or CLOCK_BOOTTIME, as deadlines are. */
uint64_t kretry_now(clockid_t clockid);

/* Names for a log: "retry", "stop-budget", "throttled"; "?" for what is none. */
const char *kretry_verdict_name(unsigned int verdict);
const char *kretry_event_name(unsigned int event);

/* Whether the verdict says not to make the attempt. */
static inline int kretry_is_stop(unsigned int verdict)
{
	return verdict >= KRETRY_STOP_PERMANENT;
}

/* -------- what a result means -------- */

/*
 * The event to report for a result: OK, a class of failure, or CANCELLED where it was the caller
 * who gave up. kretry_class(3) says why each entry of these tables is as it is. What is in none of
 * them is UNKNOWN.
 */

/* @error: an errno, of either sign, 0 for success. @sent: part of the request may have left. */
enum kretry_event kretry_class_errno(int error, int sent);
/* @status: the final status of an HTTP response, 100 to 599; of 1xx only 101 is one. */
enum kretry_event kretry_class_http(int status);
/* @code: a gRPC status code, 0 to 16. CANCELLED, 1, is KRETRY_EVENT_CANCELLED. */
enum kretry_event kretry_class_grpc(int code);
/* @code: a CURLcode of libcurl, which is what curl(1) exits with. */
enum kretry_event kretry_class_curl(int code);
/* @status: what a command exited with, 0 to 255, where 128 + n is for signal n as in a shell. */
enum kretry_event kretry_class_exit(int status);

/*
 * How long the value of a Retry-After header asks to wait, in @hint_ns: a number of seconds, also
 * with a fraction (what is finer than 1 ns is rounded up), or a date in any of the three forms of
 * RFC 9110, 5.6.7. A date is taken relative to @date, the value of the Date header of the same
 * response, so that the clocks of the two hosts need not agree; to this host's clock where @date is
 * NULL or no date. One that is past is 0. Errors: ENOENT for everything else: no hint.
 */
int kretry_parse_retry_after(const char *value, const char *date, uint64_t *hint_ns);

/*
 * The same for RateLimit-Reset, X-RateLimit-Reset and their like: seconds to wait, or the time of
 * the reset in seconds since 1970 if that is 10^9 or more, in milliseconds from 10^12 on.
 */
int kretry_parse_ratelimit_reset(const char *value, const char *date, uint64_t *hint_ns);

/* What the head of a response says. */
struct kretry_response {
	int		status;		/* of HTTP */
	unsigned int	flags;		/* KRETRY_OP_HINT where hint_ns is one, else 0 */
	uint64_t	hint_ns;
};

/*
 * Read the head of an HTTP response, as it came or as curl -D has written it, up to the first empty
 * line that no other head follows: of several (redirects, 100 Continue, a proxy's) the last counts.
 * Retry-After is a hint with any status, RateLimit-Reset with 429 and 503, and where
 * RateLimit-Remaining is 0; so is RateLimit, which has both. Retry-After goes before these, and of
 * several the longest. Errors: ENOENT for a text that does not begin with a status line.
 */
int kretry_parse_response(const char *head, size_t length, struct kretry_response *response);

/* -------- the same request again, and only one layer -------- */

#define KRETRY_IDEMPOTENCY_KEY_SIZE	37

/*
 * A fresh key for the Idempotency-Key header: a random UUID (RFC 9562, version 4) from the kernel's
 * generator, so that no two processes, children of fork() or clones of a machine have the same.
 * Made once for an operation, sent with each of its attempts. Errors: what getrandom(2) says.
 */
int kretry_idempotency_key(char key[KRETRY_IDEMPOTENCY_KEY_SIZE]);

/*
 * Where each of n layers makes 4 attempts, the last one sees 4^n. So the outermost says that it
 * retries, in the environment of a command or the header of a request, and those within fail at
 * once. The value is the number of the attempt, from 1 on.
 */
#define KRETRY_ATTEMPT_ENV	"KRETRY_ATTEMPT"
#define KRETRY_ATTEMPT_HEADER	"Kretry-Attempt"
#define KRETRY_ATTEMPT_SIZE	11

/* The value for @op: "1" at its first attempt. */
const char *kretry_attempt_text(const struct kretry_op *op, char text[KRETRY_ATTEMPT_SIZE]);

/*
 * Whether a layer above retries already: @value is that of the header of the request that is being
 * served, or NULL for this process's environment; any number but 0 says so. Then report failures
 * with KRETRY_OP_NO_RETRY.
 */
int kretry_is_nested(const char *value);

/* -------- the queue -------- */

/*
 * An op that is stepped with KRETRY_OP_QUEUE and has to wait (its flags then say KRETRY_OP_QUEUED)
 * does so in the kernel or, where the process decides, in the process, until it is read: one file
 * descriptor for any number of retries. Its user_data must be unique among those queued on the
 * handle. Each is read, cancelled or dropped with the handle: exactly one of the three.
 *
 * All of it is EBUSY on a handle whose queue a scheduler uses (KRETRY_METHOD_QUEUE), and EOPNOTSUPP
 * where the module has no queue. In a child of fork() what its parent queued is still the parent's:
 * with the module both would read from one file, so the child has to open its own.
 */

/*
 * A file descriptor to poll: readable when an op is due, now and then although none is. It does not
 * block, belongs to the handle and must not be read otherwise.
 */
int kretry_queue_fd(struct kretry *k);

/*
 * Read up to @max ops that are due, by deadline; never blocks. Each has been admitted as by BEGIN,
 * and is GO or a STOP, which has cost no token: attempt is what it was before the grant. Returns
 * how many, 0 if there is none.
 */
int kretry_queue_read(struct kretry *k, struct kretry_op *ops, unsigned int max);

/*
 * Take back the queued op of that user_data: @op is what it was before its grant, whose charge goes
 * back to the budget. Errors: ENOENT where it is not queued (any more).
 */
int kretry_queue_cancel(struct kretry *k, uint64_t user_data, struct kretry_op *op);

/* -------- decisions and sleep on the caller's ring -------- */

/*
 * Prepare @sqe to complete at @deadline_ns of @clockid (-ETIME in its CQE is success). @ts is the
 * caller's and must stay until the SQE is submitted, with SQPOLL until its CQE is seen. Absolute,
 * or relative where the caller lives in a time namespace, which older kernels do not translate.
 */
void kretry_prep_sleep(struct io_uring_sqe *sqe, struct __kernel_timespec *ts, clockid_t clockid,
		       uint64_t deadline_ns);

/* One line for a person: why the kernel has no WAIT for us, or "". Lives as long as @k. */
const char *kretry_uring_reason(struct kretry *k);

/*
 * These functions prepare an SQE in any case; with an error it will fail, and break a link. If its
 * opcode is then IORING_OP_URING_CMD, and only then, its fd may be replaced by the index of the
 * device in the ring's registered files, with IOSQE_FIXED_FILE in its flags.
 */

/*
 * Prepare @sqe to do what kretry_step_batch() does, when it is submitted. @ops is the caller's and
 * must stay until the CQE. Its res is an error or 0 or more; a verdict that then is still
 * KRETRY_VERDICT_NONE has not been given. Where io_uring has no such command, the ops are answered
 * before this returns, and @sqe completes at once. Errors: EBUSY for KRETRY_OP_QUEUE as above, and
 * in that case those of kretry_step_batch().
 */
int kretry_prep_step(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_op *ops,
		     unsigned int count);

/*
 * One wait. It is the caller's and must stay until kretry_wait_result() has taken its CQE. All zero
 * at first; then set op, with BEGIN or a failure class and a user_data unique among the waits and
 * queued ops of the handle, and user_data.
 */
struct kretry_wait {
	struct kretry_op		op;		/* in and out */
	uint64_t			user_data;	/* of the SQE: unique on the ring */
	struct __kernel_timespec	ts;		/* private, like the rest */
	uint64_t			kept[20];
};

/*
 * Prepare @sqe, user_data included, to report @w->op.event, to be granted an attempt, and to
 * complete when that may start: kretry_wait_result() says what became of it. A STOP breaks a link.
 *
 * Where the kernel does not offer that (kretry_uring_reason()), it is decided before this returns,
 * and @sqe is a timeout. Two things are not the same then. With a breaker or pacing a link always
 * breaks, since BEGIN is only sent by kretry_wait_result(): if that says 0, submit the linked
 * request again. And a STOP that comes from there costs a token, if it is the module that decides.
 *
 * Errors: EINVAL for a malformed op or an event of another kind, ENOENT for an unknown policy,
 * EBUSY for a wait whose CQE has not been taken (then user_data of @sqe is the caller's to set);
 * where it is decided now, those of kretry_step().
 */
int kretry_prep_wait(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_wait *w);

/*
 * To be called once for each CQE of a wait, with its res. Returns
 *   0                       start the attempt now: op is GO, and its deadline_ns is now
 *   -KRETRY_ERRNO_STOP_…    do not: op has the verdict, and attempt as it was before the grant
 *   -ECANCELED              it was cancelled; op has no verdict, and attempt likewise
 *   -EAGAIN                 not yet: prepare @w again, with op as it is
 *   ENOBUFS, EEXIST, ENOENT, ENOMEM, what kretry_prep_wait() said, or the ring: op is undecided
 */
int kretry_wait_result(struct kretry_wait *w, int res);

/*
 * Cancel a wait, by a request on its ring or at once. The CQE of @sqe says 0, or ENOENT if the wait
 * is completed, or not submitted yet, or EALREADY where a timeout stands for it and is just going
 * off; the second form returns that. The charge goes back, and the wait's own CQE says ECANCELED.
 * @k and @ring are those it was prepared with and submitted to.
 */
void kretry_prep_wait_cancel(struct io_uring_sqe *sqe, struct kretry *k, struct kretry_wait *w);
int kretry_wait_cancel(struct kretry *k, struct io_uring *ring, struct kretry_wait *w);

/* -------- the scheduler -------- */

/*
 * How the tasks of a scheduler sleep. The schedule is the same by all of them.
 *   TIMEOUT  a decision when a failure is reported, and a timeout on the ring for each retry
 *   QUEUE    a decision likewise; retries sleep in the queue of the handle, behind one poll on the
 *            ring. Only for one scheduler on a handle that this process has opened, and if nobody
 *            has used its queue
 *   WAIT     the report, the decision and the sleep are one command of the device on the ring
 */
enum kretry_method {
	KRETRY_METHOD_BEST,	/* WAIT if it is offered, else TIMEOUT; without a ring QUEUE */
	KRETRY_METHOD_TIMEOUT,
	KRETRY_METHOD_QUEUE,
	KRETRY_METHOD_WAIT
};

/*
 * What a task calls. Each runs in the thread that drives the scheduler.
 *   attempt  the attempt may start now: start it and return; when its result is there, call
 *            kretry_task_report(), at once or any time later
 *   done     the task is over with @op->verdict DONE or a STOP, or KRETRY_ERROR with an errno in
 *            @op->flags if no decision can be had, as when its policy has been closed; the task
 *            must not be used afterwards
 * Both may start, report and cancel tasks, but not run or exit the scheduler.
 */
struct kretry_task_ops {
	void (*attempt)(struct kretry_task *task, void *arg);
	void (*done)(struct kretry_task *task, const struct kretry_op *op, void *arg);
};

/*
 * Completions on a shared ring whose user_data has these top 16 bits belong to the scheduler. User
 * space pointers never have them.
 */
#define KRETRY_SCHED_TAG	0x6b72ULL
#define KRETRY_SCHED_TAG_SHIFT	48

/*
 * A scheduler for up to @max_tasks operations at a time, on the caller's @ring or, with NULL, one
 * of its own. A ring has room for one scheduler. @k and @ring must outlive it. Errors: EINVAL for 0
 * or more than 2^20 tasks or a ring with IORING_SETUP_IOPOLL, ENOMEM, what io_uring_queue_init()
 * says.
 *
 * Where io_uring is forbidden, or not in the kernel, one of its own is done without: then
 * kretry_sched_ring() is NULL, kretry_sched_reason() says why, and the schedule is the same.
 */
int kretry_sched_init(struct kretry_sched **sp, struct kretry *k, struct io_uring *ring,
		      unsigned int max_tasks);

/*
 * Have it use @method, as long as it has no tasks. Errors: EBUSY with tasks, or for QUEUE where
 * somebody else uses the queue; EOPNOTSUPP where there is no such thing, EINVAL.
 */
int kretry_sched_set_method(struct kretry_sched *s, enum kretry_method method);

/* Never BEST. It may turn from WAIT to TIMEOUT when a ring refuses the command. */
enum kretry_method kretry_sched_method(const struct kretry_sched *s);
const char *kretry_method_name(enum kretry_method method);

/* One line for a person: why the method is not a better one; "" for WAIT. Lives as long as @s. */
const char *kretry_sched_reason(const struct kretry_sched *s);

/*
 * Forget all tasks without calling them, give back the probes they hold and what is charged for
 * retries that wait in the kernel, cancel their timeouts and wait for these. NULL is allowed. In a
 * child of fork() it just frees the child's copy.
 * On a shared ring it submits what is queued, and takes its own completions out from between those
 * of others, which stay in their order: so no completion may be under way, looked at and not yet
 * marked seen. Only if the ring is full of others' completions, or is of mixed sizes, some with the
 * tag may still come afterwards; they mean nothing, and point nowhere.
 */
void kretry_sched_exit(struct kretry_sched *s);

/*
 * Start an operation: @op gives policy, key, user_data and the IDEMPOTENT flag. Its first attempt
 * is called from kretry_sched_run() or kretry_sched_poll(), or its done if it is not admitted. A
 * retry under KRETRY_POLICY_WAIT_OPEN sleeps until the breaker admits it. @tp may be NULL. Errors:
 * EBUSY for max_tasks tasks in flight, EINVAL for another flag, EACCES for a policy whose
 * parameters the caller may not look at, those of kretry_step().
 */
int kretry_sched_start(struct kretry_sched *s, const struct kretry_op *op,
		       const struct kretry_task_ops *ops, void *arg, struct kretry_task **tp);

/*
 * Report the result of the attempt: OK, CANCELLED or a failure class, with the flags
 * KRETRY_OP_HINT and KRETRY_OP_NO_RETRY and @hint_ns. The scheduler sleeps to the deadline of a
 * RETRY and calls attempt again; else it calls done, before this returns or, by METHOD_WAIT and
 * after a failure, from kretry_sched_run(), _poll() or _cqe(). A STOP at the deadline comes from
 * there by any method. Errors: EINVAL for another event or flag, EALREADY when no attempt is under
 * way.
 */
int kretry_task_report(struct kretry_task *task, enum kretry_event event, unsigned int flags,
		       uint64_t hint_ns);

/*
 * Give the operation up, whether it sleeps or an attempt is under way; done is called, with the
 * verdict DONE, before this returns. Errors: EALREADY for a task that is done.
 */
int kretry_task_cancel(struct kretry_task *task);

/* The op as the last decision left it. Lives as long as the task. */
const struct kretry_op *kretry_task_op(const struct kretry_task *task);

/* The ring in use, and an SQE on it: submits when that is full. NULL: still no room, or no ring. */
struct io_uring *kretry_sched_ring(struct kretry_sched *s);
struct io_uring_sqe *kretry_sched_get_sqe(struct kretry_sched *s);

/* Tasks that are not done. */
unsigned int kretry_sched_pending(const struct kretry_sched *s);

/*
 * Take one completion. Returns 1 if it was the scheduler's, 0 if it is the caller's to handle. The
 * caller marks it seen either way, and submits the ring before it waits.
 */
int kretry_sched_cqe(struct kretry_sched *s, const struct io_uring_cqe *cqe);

/*
 * Do what there is to do without a completion: call first attempts, queue timeouts for the retries
 * granted since, find deadlines whose completions the kernel had no memory to keep. To be called
 * before each submitting wait on a shared ring (it may end the last task, so look at
 * kretry_sched_pending() in between); kretry_sched_run() does it.
 */
void kretry_sched_poll(struct kretry_sched *s);

/*
 * Submit, wait and dispatch until no task is left, or until @stop (may be NULL) is not 0. Other
 * completions go to @cqe (may be NULL) and are marked seen. Errors: what io_uring_enter(2) says,
 * except EINTR, EAGAIN, EBUSY and EBADR, and what it says of a timeout it refuses. Without a ring:
 * EDEADLK when no task sleeps, so that none could ever go on, and there is no @stop.
 */
int kretry_sched_run(struct kretry_sched *s, void (*cqe)(const struct io_uring_cqe *cqe, void *arg),
		     void *arg, const volatile int *stop);

#ifdef __cplusplus
}
#endif

#endif /* KRETRY_H */
