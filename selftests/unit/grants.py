# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Grants that wait, and may be undone: what comes back, and where it goes."""

import model


def give_back(budget, amount, from_reserve, now):
    """Into the reserve, if that paid, as far as it could be full by itself; the rest may lapse."""
    rules = budget.rules
    amount = min(amount, rules.capacity - budget.balance())
    lasting = 0
    if from_reserve:
        full = max(rules.initial, rules.reserve_cap)
        lasting = min(amount, max(0, full - budget.reserve))
        budget.reserve += lasting
    return lasting + budget.deposit(amount - lasting, now)


class Grant:
    """What an op was before it, and what it cost."""

    def __init__(self, key, asked, charged, is_wait):
        self.attempt, self.is_wait = asked.attempt, is_wait
        self.flags = asked.flags & model.KEPT
        self.charged = charged
        self.from_reserve = charged > 0 and key.budget.reserve_took > 0

    def undone(self, key, op, now):
        """The op then, and the micro-tokens that came back: none the second time."""
        back = 0
        if self.charged:
            back = give_back(key.budget, self.charged, self.from_reserve, now)
            self.charged = 0
        return op._replace(attempt=self.attempt, flags=op.flags & 0xFF00 | self.flags), back


def broken_bounds(rules, seen):
    """What no history may do to a bucket."""
    wrong = []
    if not seen.reserve <= seen.balance <= rules.capacity:
        wrong.append(f"reserve {seen.reserve} of {seen.balance} in {rules.capacity}")
    if rules.window_ns and seen.reserve > max(rules.initial, rules.reserve_cap):
        wrong.append(f"reserve {seen.reserve} is above where it may come")
    return wrong
