# SPDX-License-Identifier: GPL-2.0-only OR MIT
import kretry


def retry(call, **settings):
    settings = {"base": "1s", "cap": "8s", "max_retries": 4, "jitter": "none"} | settings
    return kretry.retry(**settings, classify=lambda error: "transient")(call)()
