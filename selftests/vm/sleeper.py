# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Makes the suspends of a guest long: while it sleeps its real-time clock is set forward, then it is woken."""

MINUTES, HOURS, STATUS_B = 2, 4, 0x0B
# In STATUS_B: the registers stand still and can be set.
SET = 0x80


class Sleeper:
    """Each suspend of the guest takes this many minutes of its time and none of ours."""

    def __init__(self, qmp, minutes):
        self.qmp, self.minutes = qmp, minutes

    def read(self, register):
        self.qmp.monitor(f"o /b 0x70 {register}")
        return int(self.qmp.monitor("i /b 0x71").split("=")[1], 0)

    def write(self, register, value):
        self.qmp.monitor(f"o /b 0x70 {register}")
        self.qmp.monitor(f"o /b 0x71 {value}")

    def advance(self):
        """Registers are in BCD and hours count to 24, as the firmware leaves them; a day may not end here."""
        status = self.read(STATUS_B)
        self.write(STATUS_B, status | SET)
        hours, minutes = (int(f"{self.read(register):x}") for register in (HOURS, MINUTES))
        hours, minutes = divmod(hours * 60 + minutes + self.minutes, 60)
        self.write(MINUTES, int(str(minutes), 16))
        self.write(HOURS, int(str(hours), 16))
        self.write(STATUS_B, status)

    def turn(self):
        if self.qmp.event("SUSPEND"):
            self.advance()
            self.qmp.command("system_wakeup")
