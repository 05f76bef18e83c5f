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
			 { KRETRY_STOP_ELAPSED,		"stop-elapsed" })

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

#endif /* KRETRY_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
