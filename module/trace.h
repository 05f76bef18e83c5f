/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tracepoints: /sys/kernel/tracing/events/kretry. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kretry

#if !defined(KRETRY_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KRETRY_TRACE_H

#include <linux/kretry.h>
#include <linux/tracepoint.h>

#define kretry_trace_event(event)						\
	__print_symbolic(event,							\
			 { KRETRY_EVENT_BEGIN,		"begin" },		\
			 { KRETRY_EVENT_OK,		"ok" },			\
			 { KRETRY_EVENT_CANCELLED,	"cancelled" },		\
			 { KRETRY_EVENT_TRANSIENT,	"transient" },		\
			 { KRETRY_EVENT_THROTTLED,	"throttled" },		\
			 { KRETRY_EVENT_UNKNOWN,	"unknown" },		\
			 { KRETRY_EVENT_PERMANENT,	"permanent" })

#define kretry_trace_verdict(verdict)						\
	__print_symbolic(verdict,						\
			 { KRETRY_GO,			"go" },			\
			 { KRETRY_RETRY,		"retry" },		\
			 { KRETRY_DONE,			"done" },		\
			 { KRETRY_STOP_PERMANENT,	"stop-permanent" },	\
			 { KRETRY_STOP_UNSAFE,		"stop-unsafe" },	\
			 { KRETRY_STOP_LIMIT,		"stop-limit" },		\
			 { KRETRY_STOP_HINT,		"stop-hint" },		\
			 { KRETRY_STOP_ELAPSED,		"stop-elapsed" },	\
			 { KRETRY_STOP_BUDGET,		"stop-budget" },	\
			 { KRETRY_STOP_OPEN,		"stop-open" },		\
			 { KRETRY_STOP_COOLING,		"stop-cooling" },	\
			 { KRETRY_STOP_PACED,		"stop-paced" })

#define kretry_trace_state(state)						\
	__print_symbolic(state,							\
			 { KRETRY_CLOSED,		"closed" },		\
			 { KRETRY_OPEN,			"open" },		\
			 { KRETRY_HALF_OPEN,		"half-open" })

/* Each decision, with the event that led to it; times are the host's. */
TRACE_EVENT(kretry_decide,

	TP_PROTO(const struct kretry_op *op, u8 event),

	TP_ARGS(op, event),

	TP_STRUCT__entry(
		__field(u64, key)
		__field(u64, delay_ns)
		__field(u64, deadline_ns)
		__field(u32, policy)
		__field(u32, attempt)
		__field(u8, event)
		__field(u8, verdict)
	),

	TP_fast_assign(
		__entry->key = op->key;
		__entry->delay_ns = op->delay_ns;
		__entry->deadline_ns = op->deadline_ns;
		__entry->policy = op->policy;
		__entry->attempt = op->attempt;
		__entry->event = event;
		__entry->verdict = op->verdict;
	),

	TP_printk("policy=%u key=0x%016llx event=%s attempt=%u verdict=%s delay_ns=%llu deadline_ns=%llu",
		  __entry->policy, __entry->key, kretry_trace_event(__entry->event),
		  __entry->attempt, kretry_trace_verdict(__entry->verdict), __entry->delay_ns,
		  __entry->deadline_ns)
);

/* Each change of a breaker's state. */
TRACE_EVENT(kretry_transition,

	TP_PROTO(const struct kretry_policy *p, u64 key, u8 from, u8 to),

	TP_ARGS(p, key, from, to),

	TP_STRUCT__entry(
		__array(char, name, KRETRY_NAME_MAX)
		__field(u64, key)
		__field(u8, from)
		__field(u8, to)
	),

	TP_fast_assign(
		memcpy(__entry->name, p->name, KRETRY_NAME_MAX);
		__entry->key = key;
		__entry->from = from;
		__entry->to = to;
	),

	TP_printk("name=%s key=0x%016llx %s -> %s", __entry->name, __entry->key,
		  kretry_trace_state(__entry->from), kretry_trace_state(__entry->to))
);

/* Ops of one file that were put off: after a clone of the machine, or one after a suspend. */
TRACE_EVENT(kretry_put_off,

	TP_PROTO(bool cloned, u32 count),

	TP_ARGS(cloned, count),

	TP_STRUCT__entry(
		__field(bool, cloned)
		__field(u32, count)
	),

	TP_fast_assign(
		__entry->cloned = cloned;
		__entry->count = count;
	),

	TP_printk("after=%s count=%u", __entry->cloned ? "clone" : "suspend", __entry->count)
);

#endif /* KRETRY_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
