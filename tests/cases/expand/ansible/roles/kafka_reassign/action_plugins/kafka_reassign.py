"""Looks at the cluster until a batch is complete: prints the progress, and holds or stops the run."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()

REACTIONS = {
    "no_answer": "hold",
    "live_brokers": "hold",
    "offline": "hold",
    "under_min_isr": "hold",
    "under_replicated": "hold",
    "foreign": "finish",
    "stop_file": "finish",
    "window": "finish",
    "expiry": "finish",
    "batches": "finish",
    "command": "hold",
    "disk": "cancel",
    "lag": "hold",
}
_WORDS = ("ignore", "hold", "finish", "cancel")
# What of the task's arguments is the plugin's alone.
_OWN = {
    *("name", "reactions", "window", "valid_until", "guard_seconds", "hold_seconds", "wait_seconds", "delay"),
    *("batches_left", "planned_bytes", "second_looks", "once", "tool_starts", "return_when_held"),
    *("planned_seconds", "later_seconds"),
}
_HOURS = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]")
_LINE_SECONDS = 60


def say(line):
    """Print a line at once: Ansible doesn't flush its standard output where that is no terminal."""
    display.display(line, stderr=True)


def inside(window, now):
    """True where `now`, an aware time, is in a window `22:00-05:00 Europe/Berlin`; UTC where it names no zone."""
    hours, _, zone = window.partition(" ")
    begin, _, end = hours.partition("-")
    local = now.astimezone(ZoneInfo(zone.strip() or "UTC")).strftime("%H:%M")
    return begin <= local < end if begin < end else local >= begin or local < end


def check_window(window):
    """A sentence on what is wrong with a window, or an empty one."""
    hours, _, zone = window.partition(" ")
    try:
        ZoneInfo(zone.strip() or "UTC")
        known = True
    except (ValueError, KeyError, OSError):
        known = False
    if not known or not _HOURS.fullmatch(hours):
        return f"kafka_reassign_window: '{window}' is no window; allowed: such as 22:00-05:00 Europe/Berlin"
    return ""


def check_settings(reactions, lag_limits, window):
    """A sentence on what is wrong with the guards' settings, or an empty one."""
    wrong = [f"{k}: {v}" for k, v in reactions.items() if k not in REACTIONS or v not in _WORDS]
    if wrong:
        allowed = f"{', '.join(sorted(REACTIONS))} with {', '.join(_WORDS)}"
        return f"kafka_reassign_reactions: {', '.join(wrong)} isn't possible; allowed: {allowed}"
    wrong = [f"{k}: {v}" for k, v in (lag_limits or {}).items() if not re.fullmatch("[0-9]+", str(v))]
    if wrong:
        return f"kafka_reassign_lag_limits: {', '.join(wrong)} isn't possible; allowed: groups with numbers of records"
    return check_window(window) if window else ""


def size(value):
    """Bytes in decimal units, three digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1000
    return ""


def duration(seconds):
    """Seconds in the largest fitting unit or two."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def progress(name, done, partitions, copied, planned, seconds, later_seconds=0):
    """One line: partitions, bytes, rate and time left as far as they are known; later batches take `later_seconds`."""
    parts = [f"{done} of {partitions} partitions"]
    if copied is not None and planned:
        parts.append(f"{size(min(copied, planned))} of {size(planned)}")
        if copied and seconds:
            rate = copied / seconds
            left = max(0, planned - copied) / rate
            parts += [f"{size(rate)}/s", f"{duration(left)} left"]
            if later_seconds:
                parts.append(f"{duration(left + later_seconds)} with the batches after it")
    return f"{name}: {', '.join(parts)}, {duration(seconds)} so far"


class ActionModule(ActionBase):
    """The task `kafka_reassign`."""

    TRANSFERS_FILES = False
    tool_starts = 0

    @property
    def moves(self):
        """True where a batch is waited for; otherwise there is none yet, or only the cluster is looked at."""
        return bool(self.given.get("target")) and not self.given.get("before")

    def tell(self, event, line):
        """Print a line, and have the next call of the module write it to the journal."""
        say(line)
        self.entries.append({"event": event, "said": line})

    def run(self, tmp=None, task_vars=None):
        """Look until the batch is complete, or until something ends the wait; without a batch until nothing holds."""
        result = super().run(tmp, task_vars)
        self.task_vars, self.entries = task_vars, []
        own = {key: value for key, value in self._task.args.items() if key != "guards"}
        self.given = {**self._task.args["guards"], **own}
        self.reactions = dict(REACTIONS, **(self.given.get("reactions") or {}))
        # A failure is returned: Ansible doesn't try a task again that raises one.
        try:
            result.update(self.answer())
        except AnsibleActionFail as error:
            result.update(failed=True, msg=str(error))
        result["tool_starts"] = self.tool_starts
        return result

    def answer(self):
        """What the task was asked for."""
        if problem := check_settings(self.reactions, self.given.get("lag_limits"), self.given.get("window")):
            raise AnsibleActionFail(problem)
        return self.waited() if self.given.get("ask", "look") == "look" else self.module()

    def waited(self):
        """The wait, and its begin and end in the journal."""
        name = self.given.get("name", "")
        noted = self.moves and not self.given.get("once")
        if noted:
            self.entries.append({"event": "begin", "said": f"{name} began."})
        found = self.wait()
        if noted and "held" not in found:
            took, planned = duration(time.monotonic() - self.started), int(self.given.get("planned_seconds") or 0)
            took += f" ({duration(planned)} planned at the throttle)" if planned else ""
            reached = f"{found.get('reached', 0)} of {found['partitions']} partitions"
            before = int(self.given.get("tool_starts", 0))
            end = f"{name} ended after {took}: {reached} are where they should be. Kafka's tools were started "
            self.tell("end", f"{end}{before} times for it, {self.tool_starts} times to wait.")
            self.module(ask="note")
        return found

    def wait(self):
        """The last look, and how the wait ended: `failed` with `cancel` and `msg`, or `finish` with reasons to stop."""
        self.started, self.parent = time.monotonic(), os.getppid()
        self.held_since, self.hold, self.finish, self.told = None, "", [], set()
        self.rate = int(self.given.get("throttle_bytes_per_sec") or 0)
        # Right before a batch there was a look at the cluster already.
        next_cluster = self.started + (float(self.given["guard_seconds"]) if self.moves else 0)
        next_line = self.started + _LINE_SECONDS
        second_looks = 0
        while True:
            now = time.monotonic()
            deep, measure = now >= next_cluster, now >= next_line
            look = self.look(deep, measure)
            if deep:
                next_cluster = now + float(self.given["guard_seconds"])
                # Of a batch that is done already nothing is started, whatever speaks against it.
                reasons = {} if look.get("pending") == [] else {**look["reasons"], **self.clock()}
                if cancel := self.judge(reasons):
                    return {**look, "failed": True, "cancel": True, "msg": cancel}
            if measure:
                next_line = now + _LINE_SECONDS
                self.line(look)
            self.follow_throttle(look)
            if self.hold and self.given.get("return_when_held"):
                return {**look, "held": self.hold, "finish": []}
            complete = self.complete(look)
            if complete and look.get("elsewhere") and second_looks < int(self.given.get("second_looks", 0)):
                # Kafka's tool asks the controller what still moves, and a broker where replicas are: it may lag.
                second_looks += 1
            elif complete:
                return {**look, "finish": self.finish}
            elif (over := self.over()) is not None:
                return {**look, "failed": True, "cancel": False, "msg": over}
            self.pause(min(float(self.given["delay"]), 2) if complete else float(self.given["delay"]))

    def pause(self, seconds):
        """Sleep; a killed playbook leaves this process behind, which then ends, too."""
        if os.getppid() != self.parent:
            raise AnsibleActionFail("the playbook was ended")
        time.sleep(seconds)

    def judge(self, reasons):
        """Sort the reasons by their reactions and print what is new; the text of those that cancel."""
        of = {word: [said for guard, said in reasons.items() if self.reactions[guard] == word] for word in _WORDS}
        self.finish = of["finish"]
        for said in self.finish:
            if self.moves and said not in self.told:
                self.tell("finish", f"{self.given['name']} goes on to its end, then the run stops: {said}.")
        self.told.update(self.finish)
        self.holds("; ".join(of["hold"]))
        return "; ".join(of["cancel"])

    def complete(self, look):
        """True where nothing of the batch moves any more; without a batch, where nothing holds the run."""
        if self.given.get("once"):
            return True
        if self.moves:
            return look["rc"] == 0 and not look["moving"]
        return bool(self.finish) or not self.hold

    def over(self):
        """Why the wait ends although the batch isn't complete, or None."""
        now = time.monotonic()
        if self.hold and now - self.held_since > float(self.given["hold_seconds"]):
            return f"held for {duration(now - self.held_since)}: {self.hold}"
        return "" if now - self.started > float(self.given["wait_seconds"]) else None

    def look(self, deep, measure):
        """One call of the module on the admin host."""
        measure = measure and bool(self.given.get("planned_bytes"))
        found = self.module(look_at_cluster=deep, measure=measure, verify=self.moves)
        if self.given.get("once") and "no_answer" in found["reasons"]:
            raise AnsibleActionFail(found["reasons"]["no_answer"])
        return {**found, "rc": found.get("rc", 0), "moving": found.get("moving", [])}

    def module(self, **further):
        """The module's answer."""
        arguments = {key: value for key, value in self.given.items() if key not in _OWN}
        arguments.update(further, entries=self.entries)
        self.entries = []
        found = self._execute_module("kafka_reassign", module_args=arguments, task_vars=self.task_vars)
        if found.get("failed") or found.get("unreachable"):
            # An exception of the module: its text is where the version of Ansible puts it.
            event = getattr(found.get("exception"), "event", None)
            said = found.get("msg") or getattr(event, "msg", "")
            said = " ".join(filter(None, (said, (found.get("module_stderr") or "")[-500:])))
            raise AnsibleActionFail(f"the admin host has no answer: {said}")
        self.tool_starts += len(found["calls"])
        for said in found.get("said", []):
            say(said)
        return found

    def follow_throttle(self, look):
        """Give what moves the rate of the throttle file, where that is another than the last one."""
        wanted, problem = look.get("throttle_bytes_per_sec"), look.get("throttle_problem", "")
        if problem and problem not in self.told:
            self.told.add(problem)
            say(f"{problem}. The throttle stays as it is.")
        if self.moves and self.rate and wanted and wanted != self.rate:
            try:
                self.module(ask="throttle", throttle_bytes_per_sec=wanted)
            except AnsibleActionFail as error:
                # Kafka's tools may fail for some seconds after a broker has died. The next look tries again.
                say(f"The throttle couldn't be changed yet: {error}")
                return
            self.rate = wanted

    def clock(self):
        """Reasons of the hour: the window, the plan's expiry, and how many batches this run may start."""
        now = datetime.now(timezone.utc)  # noqa: UP017  (Ansible 2.17 runs on Python 3.10 too)
        found = {}
        window, expiry = self.given.get("window"), self.given.get("valid_until")
        if window and not inside(window, now):
            found["window"] = f"outside the maintenance window {window}"
        if expiry and now.strftime("%Y-%m-%dT%H:%M:%SZ") >= expiry:
            found["expiry"] = f"the plan was valid until {expiry}"
        if self.given.get("batches_left") is not None and int(self.given["batches_left"]) <= 0:
            found["batches"] = "as many batches were carried out as this run may start"
        return found

    def holds(self, hold):
        """Print that the run is held, or goes on, where that is news."""
        now = time.monotonic()
        if hold and hold != self.hold:
            self.held_since = self.held_since or now
            left = duration(max(0, float(self.given["hold_seconds"]) - (now - self.held_since)))
            self.tell(
                "held",
                f"HELD, {self.given['name']}: {hold}. What moves goes on at its throttle, no other batch starts. "
                f"The run goes on by itself when this is over; if it isn't in {left}, the run stops.",
            )
        if self.hold and not hold:
            self.tell("goes_on", f"GOES ON, {self.given['name']}: over is {self.hold}.")
            self.held_since = None
        self.hold = hold

    def line(self, look):
        """Print how far the batch is."""
        if self.moves:
            done = look["partitions"] - len(look["moving"])
            planned = int(self.given.get("planned_bytes") or 0)
            seconds = time.monotonic() - self.started
            later = int(self.given.get("later_seconds") or 0)
            line = progress(self.given["name"], done, look["partitions"], look["copied_bytes"], planned, seconds, later)
            self.tell("progress", line)
