# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The idiom: five attempts, 1, 2, 4 and 8 seconds between them.
import time


def retry(call, attempts=5, delay=1.0, longest=8.0):
    for attempt in range(1, attempts + 1):
        try:
            return call()
        except Exception:
            if attempt == attempts:
                raise
            time.sleep(min(delay * 2 ** (attempt - 1), longest))
