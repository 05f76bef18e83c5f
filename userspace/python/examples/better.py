# SPDX-License-Identifier: GPL-2.0-only OR MIT
import urllib.request

import kretry


@kretry.retry("shop", key="https://shop.example:443", idempotent=True)
def fetch(path):
    with urllib.request.urlopen(f"https://shop.example/{path}", timeout=5) as response:
        return response.read()
