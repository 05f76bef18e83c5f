// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a result means. kretry_class(3) has every entry with its reason; the tests compare the two.
 * What is not in a table is UNKNOWN: a retry of that is only for who knows it to be harmless.
 */

#include <errno.h>
#include <sysexits.h>

#include "internal.h"

#define OK		KRETRY_EVENT_OK
#define CANCELLED	KRETRY_EVENT_CANCELLED
#define TRANSIENT	KRETRY_EVENT_TRANSIENT
#define THROTTLED	KRETRY_EVENT_THROTTLED
#define UNKNOWN		KRETRY_EVENT_UNKNOWN
#define PERMANENT	KRETRY_EVENT_PERMANENT

#define COUNT(table)	((int)(sizeof(table) / sizeof(*(table))))

static enum kretry_event look_up(const unsigned char *table, int count, int code)
{
	return code >= 0 && code < count && table[code] ? table[code] : UNKNOWN;
}

/* A class, and with SENT_TOO the same after sending, when it would be UNKNOWN otherwise. */
#define SENT_TOO	0x80

#define ALWAYS(class)	((class) | SENT_TOO)
#define UNSENT(class)	(class)

static const unsigned char of_errno[] = {
	[0] = ALWAYS(OK),
	[ECONNREFUSED] = ALWAYS(TRANSIENT),	/* also of a datagram: nobody took it */
	[ECONNRESET] = UNSENT(TRANSIENT),
	[ECONNABORTED] = UNSENT(TRANSIENT),
	[EPIPE] = UNSENT(TRANSIENT),
	[ETIMEDOUT] = UNSENT(TRANSIENT),
	[ETIME] = UNSENT(TRANSIENT),
	[EHOSTUNREACH] = UNSENT(TRANSIENT),
	[ENETUNREACH] = UNSENT(TRANSIENT),
	[EHOSTDOWN] = UNSENT(TRANSIENT),
	[ENETDOWN] = UNSENT(TRANSIENT),
	[ENETRESET] = UNSENT(TRANSIENT),
	[ENONET] = UNSENT(TRANSIENT),
	[ENOLINK] = UNSENT(TRANSIENT),
	[ECOMM] = UNSENT(TRANSIENT),
	[ESHUTDOWN] = UNSENT(TRANSIENT),	/* a new connection may do */
	[ENOTCONN] = UNSENT(TRANSIENT),
	[EAGAIN] = UNSENT(TRANSIENT),	/* after sending: SO_RCVTIMEO has passed */
	[EINTR] = UNSENT(TRANSIENT),
	[EINPROGRESS] = UNSENT(TRANSIENT),
	[EALREADY] = UNSENT(TRANSIENT),
	[ERESTART] = UNSENT(TRANSIENT),
	[ENOMEM] = UNSENT(TRANSIENT),
	[ENOBUFS] = UNSENT(TRANSIENT),
	[EMFILE] = UNSENT(TRANSIENT),
	[ENFILE] = UNSENT(TRANSIENT),
	[EADDRINUSE] = ALWAYS(TRANSIENT),
	[EADDRNOTAVAIL] = ALWAYS(TRANSIENT),	/* no local port is free */
	[EBUSY] = ALWAYS(TRANSIENT),
	[ETXTBSY] = ALWAYS(TRANSIENT),
	[EDEADLK] = ALWAYS(TRANSIENT),
	[ENOLCK] = ALWAYS(TRANSIENT),
	[EUSERS] = ALWAYS(TRANSIENT),
	[ESTALE] = ALWAYS(TRANSIENT),	/* its name finds the new file */
	[ENOSR] = UNSENT(TRANSIENT),
	[EUCLEAN] = ALWAYS(PERMANENT),
	[ECANCELED] = ALWAYS(CANCELLED),	/* the caller's own doing */
	[ENOTRECOVERABLE] = ALWAYS(PERMANENT),
	[EHWPOISON] = ALWAYS(PERMANENT),
	[EPERM] = ALWAYS(PERMANENT),
	[EACCES] = ALWAYS(PERMANENT),
	[EROFS] = ALWAYS(PERMANENT),
	[ENOENT] = ALWAYS(PERMANENT),	/* also no socket of a local server */
	[ESRCH] = ALWAYS(PERMANENT),
	[ENXIO] = ALWAYS(PERMANENT),
	[ENODEV] = ALWAYS(PERMANENT),
	[ENOTBLK] = ALWAYS(PERMANENT),
	[ENOTDIR] = ALWAYS(PERMANENT),
	[EISDIR] = ALWAYS(PERMANENT),
	[ENOTEMPTY] = ALWAYS(PERMANENT),
	[EEXIST] = ALWAYS(PERMANENT),
	[EXDEV] = ALWAYS(PERMANENT),
	[ELOOP] = ALWAYS(PERMANENT),
	[EMLINK] = ALWAYS(PERMANENT),
	[ENAMETOOLONG] = ALWAYS(PERMANENT),
	[E2BIG] = ALWAYS(PERMANENT),
	[ENOEXEC] = ALWAYS(PERMANENT),
	[ELIBACC] = ALWAYS(PERMANENT),
	[ELIBBAD] = ALWAYS(PERMANENT),
	[ELIBSCN] = ALWAYS(PERMANENT),
	[ELIBMAX] = ALWAYS(PERMANENT),
	[ELIBEXEC] = ALWAYS(PERMANENT),
	[EBADF] = ALWAYS(PERMANENT),
	[EBADFD] = ALWAYS(PERMANENT),
	[EFAULT] = ALWAYS(PERMANENT),
	[EINVAL] = ALWAYS(PERMANENT),
	[EDOM] = ALWAYS(PERMANENT),
	[ERANGE] = ALWAYS(PERMANENT),
	[EOVERFLOW] = ALWAYS(PERMANENT),
	[EILSEQ] = ALWAYS(PERMANENT),
	[ENOTTY] = ALWAYS(PERMANENT),
	[ESPIPE] = ALWAYS(PERMANENT),
	[EFBIG] = ALWAYS(PERMANENT),
	[ENOSPC] = ALWAYS(PERMANENT),	/* does not pass in the time of a retry */
	[EDQUOT] = ALWAYS(PERMANENT),
	[ECHILD] = ALWAYS(PERMANENT),
	[ENOSYS] = ALWAYS(PERMANENT),
	[EOPNOTSUPP] = ALWAYS(PERMANENT),
	[EPROTOTYPE] = ALWAYS(PERMANENT),
	[ENOPROTOOPT] = ALWAYS(PERMANENT),
	[EPROTONOSUPPORT] = ALWAYS(PERMANENT),
	[ESOCKTNOSUPPORT] = ALWAYS(PERMANENT),
	[EPFNOSUPPORT] = ALWAYS(PERMANENT),
	[EAFNOSUPPORT] = ALWAYS(PERMANENT),
	[ENOTSOCK] = ALWAYS(PERMANENT),
	[EDESTADDRREQ] = ALWAYS(PERMANENT),
	[EISCONN] = ALWAYS(PERMANENT),
	[EMSGSIZE] = ALWAYS(PERMANENT),
	[ETOOMANYREFS] = ALWAYS(PERMANENT),
	[ENOTUNIQ] = ALWAYS(PERMANENT),
	[ENOKEY] = ALWAYS(PERMANENT),
	[EKEYEXPIRED] = ALWAYS(PERMANENT),
	[EKEYREVOKED] = ALWAYS(PERMANENT),
	[EKEYREJECTED] = ALWAYS(PERMANENT),
	[ERFKILL] = ALWAYS(PERMANENT),
	[ENOMEDIUM] = ALWAYS(PERMANENT),
	[EMEDIUMTYPE] = ALWAYS(PERMANENT),
	[ENOTNAM] = ALWAYS(PERMANENT),
	[ENAVAIL] = ALWAYS(PERMANENT),
	[EISNAM] = ALWAYS(PERMANENT),
	[EREMOTE] = ALWAYS(PERMANENT),
	[ENOPKG] = ALWAYS(PERMANENT),
	[ENOSTR] = ALWAYS(PERMANENT),
};

enum kretry_event kretry_class_errno(int error, int sent)
{
	if (error < 0 && error > -COUNT(of_errno))
		error = -error;
	if (error < 0 || error >= COUNT(of_errno) || !of_errno[error])
		return UNKNOWN;
	return sent && !(of_errno[error] & SENT_TOO) ? UNKNOWN : of_errno[error] & ~SENT_TOO;
}

enum kretry_event kretry_class_http(int status)
{
	switch (status) {
	case 101:	/* the only one of its kind that is final */
	case 200 ... 399:
		return OK;
	case 408:
	case 421:
	case 425:
	case 503:
		return TRANSIENT;
	case 429:
		return THROTTLED;
	case 400 ... 407:
	case 409 ... 420:
	case 422 ... 424:
	case 426 ... 428:
	case 430 ... 499:
	case 501:
	case 505:
		return PERMANENT;
	default:
		return UNKNOWN;
	}
}

static const unsigned char of_grpc[] = {
	[0] = OK,	/* OK */
	[1] = CANCELLED,	/* CANCELLED */
	[3] = PERMANENT,	/* INVALID_ARGUMENT */
	[5] = PERMANENT,	/* NOT_FOUND */
	[6] = PERMANENT,	/* ALREADY_EXISTS */
	[7] = PERMANENT,	/* PERMISSION_DENIED */
	[8] = THROTTLED,	/* RESOURCE_EXHAUSTED */
	[9] = PERMANENT,	/* FAILED_PRECONDITION */
	[10] = TRANSIENT,	/* ABORTED */
	[11] = PERMANENT,	/* OUT_OF_RANGE */
	[12] = PERMANENT,	/* UNIMPLEMENTED */
	[14] = TRANSIENT,	/* UNAVAILABLE */
	[15] = PERMANENT,	/* DATA_LOSS */
	[16] = PERMANENT,	/* UNAUTHENTICATED */
};

enum kretry_event kretry_class_grpc(int code)
{
	return look_up(of_grpc, COUNT(of_grpc), code);
}

static const unsigned char of_exit[] = {
	[0] = OK,
	[EX_USAGE] = PERMANENT,
	[EX_DATAERR] = PERMANENT,
	[EX_NOINPUT] = PERMANENT,
	[EX_NOUSER] = PERMANENT,
	[EX_NOHOST] = PERMANENT,
	[EX_UNAVAILABLE] = TRANSIENT,
	[EX_OSFILE] = PERMANENT,
	[EX_CANTCREAT] = PERMANENT,
	[EX_TEMPFAIL] = TRANSIENT,
	[EX_NOPERM] = PERMANENT,
	[EX_CONFIG] = PERMANENT,
	[126] = PERMANENT,	/* not executable */
	[127] = PERMANENT,	/* not found */
};

enum kretry_event kretry_class_exit(int status)
{
	return look_up(of_exit, COUNT(of_exit), status);
}
