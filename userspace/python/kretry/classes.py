# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a result means: the class of a failure, from numbers and from exceptions.

The tables are those of the C library; kretry_class(3) says why each entry is as it is.
"""

import errno
import os
import socket
import sys
from typing import NamedTuple

from .abi import Event
from .hints import parse_retry_after

OK, CANCELLED, TRANSIENT, THROTTLED = Event.OK, Event.CANCELLED, Event.TRANSIENT, Event.THROTTLED
UNKNOWN, PERMANENT = Event.UNKNOWN, Event.PERMANENT


class Failure(NamedTuple):
    """A class of failure and what the server has said: how many ns to wait, or not to come back."""

    event: Event
    hint_ns: int | None = None
    no_retry: bool = False


def failure_of(value):
    """A Failure of what a caller gives: one, an Event, or the name of one."""
    failure = value if isinstance(value, Failure) else Failure(value)
    event = failure.event
    if isinstance(event, str):
        event = Event.__members__.get(event.upper(), event)
    if event not in (TRANSIENT, THROTTLED, UNKNOWN, PERMANENT):
        raise ValueError(f"{value!r}: a failure is transient, throttled, unknown or permanent")
    return failure._replace(event=Event(event))


# -------- numbers --------

def numbers(names):
    """Of errnos."""
    return frozenset(getattr(errno, name) for name in names.split())


ALWAYS_TRANSIENT = numbers("ECONNREFUSED EADDRINUSE EADDRNOTAVAIL EBUSY ETXTBSY EDEADLK ENOLCK EUSERS ESTALE")
# Before anything was sent; afterwards the work may have been done.
UNSENT_TRANSIENT = numbers(
    "ECONNRESET ECONNABORTED EPIPE ETIMEDOUT ETIME EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN ENETRESET ENONET"
    " ENOLINK ECOMM ESHUTDOWN ENOTCONN EAGAIN EINTR EINPROGRESS EALREADY ERESTART ENOMEM ENOBUFS EMFILE ENFILE ENOSR")
ALWAYS_PERMANENT = numbers(
    "EUCLEAN ENOTRECOVERABLE EPERM EACCES EROFS ENOENT ESRCH ENXIO ENODEV ENOTBLK ENOTDIR EISDIR ENOTEMPTY EEXIST"
    " EXDEV ELOOP EMLINK ENAMETOOLONG E2BIG ENOEXEC ELIBACC ELIBBAD ELIBSCN ELIBMAX ELIBEXEC EBADF EBADFD EFAULT"
    " EINVAL EDOM ERANGE EOVERFLOW EILSEQ ENOTTY ESPIPE EFBIG ENOSPC EDQUOT ECHILD ENOSYS EOPNOTSUPP EPROTOTYPE"
    " ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EPFNOSUPPORT EAFNOSUPPORT ENOTSOCK EDESTADDRREQ EISCONN EMSGSIZE"
    " ETOOMANYREFS ENOTUNIQ ENOTNAM ENAVAIL EISNAM EREMOTE ENOSTR ENOPKG")
# For which the errno of Python 3.11 has no names: ENOMEDIUM, EMEDIUMTYPE, ENOKEY, EKEYEXPIRED, EKEYREVOKED,
# EKEYREJECTED, ERFKILL and EHWPOISON.
ALWAYS_PERMANENT |= {123, 124, 126, 127, 128, 129, 132, 133}


def class_errno(error, sent=True):
    """Of an errno, of either sign, 0 for success. sent: part of the request may have left."""
    error = abs(error)
    if error in UNSENT_TRANSIENT:
        return UNKNOWN if sent else TRANSIENT
    if error in ALWAYS_TRANSIENT:
        return TRANSIENT
    if error in ALWAYS_PERMANENT:
        return PERMANENT
    return {0: OK, errno.ECANCELED: CANCELLED}.get(error, UNKNOWN)


def class_http(status):
    """Of the final status of an HTTP response."""
    if status == 429:
        return THROTTLED
    if status in (408, 421, 425, 503):
        return TRANSIENT
    if status in (501, 505) or 400 <= status < 500:
        return PERMANENT
    return OK if status == 101 or 200 <= status < 400 else UNKNOWN


GRPC = {0: OK, 1: CANCELLED, 8: THROTTLED, 10: TRANSIENT, 14: TRANSIENT}
GRPC |= dict.fromkeys((3, 5, 6, 7, 9, 11, 12, 15, 16), PERMANENT)


def class_grpc(code):
    """Of a gRPC status code, 0 to 16."""
    return GRPC.get(code, UNKNOWN)


# Those of sysexits.h, and of a shell that finds no command.
EXIT = {0: OK, os.EX_UNAVAILABLE: TRANSIENT, os.EX_TEMPFAIL: TRANSIENT}
EXIT |= dict.fromkeys((os.EX_USAGE, os.EX_DATAERR, os.EX_NOINPUT, os.EX_NOUSER, os.EX_NOHOST, os.EX_OSFILE,
                       os.EX_CANTCREAT, os.EX_NOPERM, os.EX_CONFIG, 126, 127), PERMANENT)


def class_exit(status):
    """Of what a command exited with; of subprocess's returncode, which is negative for a signal."""
    return EXIT.get(128 - status if status < 0 else status, UNKNOWN)


# -------- exceptions --------

def loaded(module, *names):
    """Classes of a module that may not be there: who has not imported it has none of its exceptions."""
    module = sys.modules.get(module)
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


def status_of(error):
    """The HTTP status and headers of an exception, as urllib, requests, httpx and aiohttp have them."""
    response = getattr(error, "response", None)
    response = error if response is None else response
    for name in ("status_code", "status", "code"):
        status = getattr(response, name, None)
        if isinstance(status, int) and 100 <= status <= 599:
            return int(status), getattr(response, "headers", None) or {}
    return None, {}


def of_response(error):
    """Of an exception with an HTTP status, and what the server said."""
    status, headers = status_of(error)
    if status is None:
        return None
    event, value = class_http(status), headers.get("Retry-After")
    if event in (OK, CANCELLED):
        event = UNKNOWN
    return Failure(event, parse_retry_after(value, headers.get("Date")) if value else None)


def of_event(event):
    """A Failure, or None for what is none."""
    return None if event in (OK, CANCELLED) else Failure(event)


def of_os_error(error):
    """Of an OSError, whose errno is one only if nobody else has put a number of his own there."""
    if isinstance(error, socket.gaierror):
        return Failure(TRANSIENT)
    if isinstance(error, loaded("ssl", "SSLError")):
        return Failure(PERMANENT if isinstance(error, loaded("ssl", "SSLCertVerificationError")) else UNKNOWN)
    if error.errno is not None:
        return of_event(class_errno(error.errno))
    for kind, number in ((ConnectionRefusedError, errno.ECONNREFUSED), (ConnectionError, errno.ECONNRESET),
                         (TimeoutError, errno.ETIMEDOUT)):
        if isinstance(error, kind):
            return Failure(class_errno(number))
    return None


def classify(error):
    """The Failure that an exception is, or None where it says nothing about the other side: then there is no
    retry. Whether a request has been sent no exception tells, so it may have been.

    Known are OSError, with TimeoutError and ConnectionError; HTTP responses as urllib, requests, httpx and aiohttp
    raise them, with Retry-After; gRPC; subprocess's CalledProcessError and TimeoutExpired.
    """
    failure = of_response(error)
    if failure is not None:
        return failure
    if isinstance(error, loaded("urllib.error", "URLError")) and isinstance(error.reason, BaseException):
        return classify(error.reason)
    if isinstance(error, OSError):
        return of_os_error(error)
    if isinstance(error, loaded("subprocess", "CalledProcessError")):
        return of_event(class_exit(error.returncode))
    if isinstance(error, loaded("grpc", "RpcError")) and hasattr(error, "code"):
        return of_event(class_grpc(error.code().value[0]))
    lost = (loaded("subprocess", "TimeoutExpired") + loaded("http.client", "IncompleteRead", "BadStatusLine")
            + loaded("asyncio", "IncompleteReadError"))
    return Failure(UNKNOWN) if isinstance(error, lost) else None
