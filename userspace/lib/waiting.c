// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The queue of a handle where the process decides: what waits, in the order of deadlines and by
 * user_data, and a timerfd that is readable when something is due.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define BUCKETS		1024

/* Who is refused at the deadline and waits on does not ask again sooner than this. */
#define AGAIN_NS	1000000ULL

struct queue {
	struct heap	heaps[2];	/* CLOCK_MONOTONIC, CLOCK_BOOTTIME */
	struct waiting	*buckets[BUCKETS];
	u32		count;
	int		fd;
	pid_t		pid;
};

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

static struct policy_state *state_of(const struct waiting *w)
{
	return w->entry->state;
}

static struct heap *heap_of(struct queue *queue, const struct waiting *w)
{
	return &queue->heaps[state_of(w)->params.clockid == CLOCK_BOOTTIME];
}

static struct waiting *first_of(const struct heap *heap)
{
	return heap->count ? heap->items[0] : NULL;
}

/* -------- the timer -------- */

/*
 * One timer for both clocks: they differ by suspends only, and after one it may fire too early for
 * CLOCK_MONOTONIC, which whoever reads then finds out.
 */
static void set_timer(struct queue *queue)
{
	struct itimerspec timer = { 0 };
	u64 first = KRETRY_NS_MAX, now, at;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		if (!queue->heaps[i].count)
			continue;
		now = kretry_now(clocks[i]);
		at = first_of(&queue->heaps[i])->op.deadline_ns;
		at = kretry_sat_add(kretry_now(CLOCK_BOOTTIME), kretry_sat_sub(at, now));
		first = min(first, at);
	}
	if (queue->count) {
		timer.it_value.tv_sec = (time_t)(first / 1000000000ULL);
		timer.it_value.tv_nsec = (long)(first % 1000000000ULL);
	}
	timerfd_settime(queue->fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static bool is_first(struct queue *queue, const struct waiting *w)
{
	return !w->place && first_of(heap_of(queue, w)) == w;
}

/* -------- coming and going -------- */

static struct waiting **slot_of(struct queue *queue, u64 user_data)
{
	struct waiting **slot;

	slot = &queue->buckets[(user_data * 0x9e3779b97f4a7c15ULL) >> 54];
	while (*slot && (*slot)->op.user_data != user_data)
		slot = &(*slot)->next;
	return slot;
}

static void insert(struct queue *queue, struct waiting *w)
{
	heap_add(heap_of(queue, w), w);
}

/* Out of everything, and forgotten. */
static void release(struct queue *queue, struct waiting *w)
{
	struct waiting **slot = slot_of(queue, w->op.user_data);

	*slot = w->next;
	w->entry->queued--;
	state_of(w)->count.queued--;
	if (w->key)
		w->key->waiters--;
	queue->count--;
	free(w);
}

static void undo(struct waiting *w)
{
	if (w->op.flags & KRETRY_OP_PROBE)
		shared_take_back(state_of(w), w->key, &w->op);
	shared_undo(state_of(w), w->key, &w->op, &w->grant);
}

/*
 * A child of fork() has a copy of what its parent waits for, and shares the timer. It forgets the
 * ones and gets its own of the other, under the same number.
 */
static int become_own(struct queue *queue)
{
	unsigned int i;
	int fd;

	fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (dup3(fd, queue->fd, O_CLOEXEC) < 0) {
		close(fd);
		return -EMFILE;
	}
	close(fd);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		while (queue->heaps[i].count)
			release(queue, queue->heaps[i].items[--queue->heaps[i].count]);
	}
	queue->pid = getpid();
	return 0;
}

static int queue_new(struct queue **queue)
{
	struct queue *new = calloc(1, sizeof(*new));

	if (!new)
		return -ENOMEM;
	new->pid = getpid();
	new->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (new->fd < 0) {
		free(new);
		return -errno;
	}
	*queue = new;
	return 0;
}

/* The queue, made when it is first wanted. */
static int queue_get(struct kretry *k)
{
	if (k->fd >= 0)
		return -EOPNOTSUPP;
	if (!k->queue)
		return queue_new(&k->queue);
	return k->queue->pid == getpid() ? 0 : become_own(k->queue);
}

/* -------- a decision whose attempt may have to wait -------- */

static int waiting_new(struct kretry *k, struct policy_entry *entry, u64 user_data,
		       struct waiting **wp)
{
	int ret = queue_get(k);
	struct waiting *w;

	if (ret < 0)
		return ret;
	if (*slot_of(k->queue, user_data))
		return -EEXIST;
	if (k->queue->count >= PROCESS_MAX_QUEUED)
		return -ENOBUFS;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->entry = entry;
	*wp = w;
	ret = heap_make_room(heap_of(k->queue, w));
	if (ret < 0)
		free(w);
	return ret;
}

/* The key the decision was about. */
struct key_state *waiting_key(const struct policy_state *state, const struct kretry_op *op)
{
	struct key_state *key;

	if (!kretry_is_shared(&state->params))
		return NULL;
	key = op->flags & KRETRY_OP_SHARED_KEY ? NULL : key_find(state, op->key);
	return key ? key : state->overflow;
}

static void enqueue(struct queue *queue, struct waiting *w, struct kretry_op *op)
{
	op->flags &= (u16)~KRETRY_OP_READMIT;
	op->flags |= KRETRY_OP_QUEUED;
	w->op = *op;
	w->admitted = op->verdict == KRETRY_GO;
	w->key = waiting_key(state_of(w), op);
	if (w->key)
		w->key->waiters++;
	*slot_of(queue, op->user_data) = w;
	queue->count++;
	w->entry->queued++;
	state_of(w)->count.queued++;
	insert(queue, w);
	if (is_first(queue, w))
		set_timer(queue);
}

int waiting_step(struct kretry *k, struct policy_entry *entry, struct kretry_op *op,
		 struct kretry_call *call)
{
	struct kretry_op asked = *op;
	struct waiting *w = NULL;
	int ret = kretry_op_check(op);

	if (!ret && (op->event == KRETRY_EVENT_BEGIN || kretry_event_is_failure(op->event)))
		ret = waiting_new(k, entry, op->user_data, &w);
	if (!ret)
		ret = shared_step(k, entry->state, op, call);
	if (ret < 0 || !w || !kretry_waits(op, call->now)) {
		free(w);
		return ret;
	}
	kretry_grant_keep(&w->grant, &asked, op, call);
	enqueue(k->queue, w, op);
	return 0;
}

/* -------- delivery -------- */

/* As BEGIN is decided. False: it waits on, until op.deadline_ns. */
static bool admit(struct kretry *k, struct waiting *w, u64 now)
{
	struct kretry_call call = { .now = now };
	struct policy_state *state = state_of(w);

	if (w->admitted)
		return true;
	w->op.event = KRETRY_EVENT_BEGIN;
	if (kretry_needs_draw(&state->params, &w->op))
		draw_random(&call.rnd, 1);
	if (shared_step(k, state, &w->op, &call) < 0) {
		w->op.event = KRETRY_EVENT_NONE;
		w->op.deadline_ns = kretry_sat_add(now, AGAIN_NS);
		return false;
	}
	if (!kretry_waits(&w->op, now))
		return true;
	w->admitted = w->op.verdict == KRETRY_GO;
	if (!w->admitted)
		w->op.deadline_ns = max(w->op.deadline_ns, kretry_sat_add(now, AGAIN_NS));
	return false;
}

static void deliver(struct queue *queue, struct waiting *w, struct kretry_op *op)
{
	if (kretry_is_stop(w->op.verdict))
		undo(w);
	*op = w->op;
	op->flags &= (u16)~KRETRY_OP_QUEUED;
	release(queue, w);
}

/* The one that has been due for longest, taken out of its heap. */
static struct waiting *take_due(struct queue *queue, u64 *now)
{
	struct waiting *due = NULL, *w;
	u64 late = 0, time;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		w = first_of(&queue->heaps[i]);
		if (!w)
			continue;
		time = kretry_now(clocks[i]);
		if (w->op.deadline_ns > time || (due && time - w->op.deadline_ns <= late))
			continue;
		due = w;
		late = time - w->op.deadline_ns;
		*now = time;
	}
	if (due)
		heap_remove(heap_of(queue, due), due);
	return due;
}

int waiting_read(struct kretry *k, struct kretry_op *ops, unsigned int max)
{
	struct waiting *w;
	unsigned int done = 0;
	int ret = queue_get(k);
	u32 looks;
	u64 now;

	if (ret < 0)
		return ret;
	for (looks = k->queue->count; looks && done < max; looks--) {
		w = take_due(k->queue, &now);
		if (!w)
			break;
		if (admit(k, w, now))
			deliver(k->queue, w, &ops[done++]);
		else
			insert(k->queue, w);
	}
	set_timer(k->queue);
	return (int)done;
}

int waiting_cancel(struct kretry *k, u64 user_data, struct kretry_op *op)
{
	int ret = queue_get(k);
	struct waiting *w;
	bool was_first;

	if (ret < 0)
		return ret;
	w = *slot_of(k->queue, user_data);
	if (!w)
		return -ENOENT;
	was_first = is_first(k->queue, w);
	heap_remove(heap_of(k->queue, w), w);
	undo(w);
	*op = w->op;
	op->verdict = KRETRY_VERDICT_NONE;
	op->flags &= KRETRY_OP_IN_MASK;
	op->deadline_ns = 0;
	release(k->queue, w);
	if (was_first)
		set_timer(k->queue);
	return 0;
}

/* -------- the end -------- */

void waiting_drop(struct kretry *k)
{
	struct waiting *w;
	unsigned int i;

	if (!k->queue || queue_get(k) < 0)
		return;
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		while ((w = first_of(&k->queue->heaps[i]))) {
			heap_remove(&k->queue->heaps[i], w);
			undo(w);
			release(k->queue, w);
		}
	}
	set_timer(k->queue);
}

void waiting_free(struct kretry *k)
{
	if (!k->queue)
		return;
	close(k->queue->fd);
	free(k->queue->heaps[0].items);
	free(k->queue->heaps[1].items);
	free(k->queue);
	k->queue = NULL;
}

int waiting_fd(struct kretry *k)
{
	int ret = queue_get(k);

	return ret < 0 ? ret : k->queue->fd;
}
