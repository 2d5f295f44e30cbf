"""Watches the cluster until a batch is complete: prints the progress, and holds or stops the run."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()

REACTIONS = {
    **dict.fromkeys(("no_answer", "live_brokers", "offline", "under_min_isr", "under_replicated"), "hold"),
    **dict.fromkeys(("log_dirs", "cordoned", "lag", "command"), "hold"),
    **dict.fromkeys(("foreign", "stop_file", "window", "expiry", "batches"), "finish"),
    "disk": "cancel",
}
_WORDS = ("ignore", "hold", "finish", "cancel")
# The arguments of a task that only this plugin reads; the module gets the others.
_OWN = {
    *("reactions", "window", "valid_until", "guard_seconds", "hold_seconds", "wait_seconds", "delay"),
    *("batches_left", "planned_bytes", "second_looks", "once", "tool_starts", "return_when_held"),
    *("guards", "planned_seconds", "later_seconds", "batch", "stopped", "word", "meanwhile", "so_far", "only_finish"),
}
_HOURS = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]")
_LINE_SECONDS = 60
# What a guard measures is another amount at each check. That isn't a new reason.
_AMOUNT = re.compile("[0-9][0-9,.]* (records|[MG]B)")
# So often a wait ends to report a hold. The tasks for it include each other, which Ansible can do some 200 times.
_REPORTS = 50
_MEANWHILE = ("Nothing of it is started.", "Replicas keep moving at the throttle; no other batch starts.")


def say(line):
    """Print a line on stderr, because Ansible flushes stdout at once only if it is a terminal."""
    display.display(line, stderr=True)


def inside(window, now):
    """True if the aware time `now` is in a window like `22:00-05:00 Europe/Berlin`. Without a zone, it is in UTC."""
    hours, _, zone = window.partition(" ")
    begin, _, end = hours.partition("-")
    local = now.astimezone(ZoneInfo(zone.strip() or "UTC")).strftime("%H:%M")
    return begin <= local < end if begin < end else local >= begin or local < end


def check_window(window):
    """A sentence that says what is wrong with a window; empty if it is valid."""
    hours, _, zone = window.partition(" ")
    wrong = f"kafka_reassign_window: '{window}' isn't a window; allowed: such as 22:00-05:00 Europe/Berlin"
    try:
        ZoneInfo(zone.strip() or "UTC")
    except (ValueError, KeyError, OSError):
        return wrong
    return "" if _HOURS.fullmatch(hours) else wrong


def check_settings(reactions, lag_limits, window, stray=""):
    """A sentence that says what is wrong with the guards' settings, or "". `stray` is text of -e outside NAME=VALUE."""
    if stray:
        return f"'{stray}' belongs to no setting: -e NAME=VALUE ends at a space; allowed: -e \"NAME='VALUE'\""
    if wrong := [f"{k}: {v}" for k, v in reactions.items() if k not in REACTIONS or v not in _WORDS]:
        allowed = f"{', '.join(sorted(REACTIONS))} with {', '.join(_WORDS)}"
        return f"kafka_reassign_reactions: {', '.join(wrong)} isn't possible; allowed: {allowed}"
    if wrong := [f"{k}: {v}" for k, v in (lag_limits or {}).items() if not re.fullmatch("[0-9]+", str(v))]:
        return f"kafka_reassign_lag_limits: {', '.join(wrong)} isn't possible; allowed: groups with numbers of records"
    return check_window(window) if window else ""


def size(value):
    """A number of bytes in decimal units, with three digits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1000
    return ""


def duration(seconds):
    """Seconds as text, in seconds, in minutes, or in hours and minutes."""
    minutes = round(seconds / 60)
    short = f"{minutes} min" if minutes else f"{round(seconds)} s"
    return short if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def progress(name, done, partitions, copied, planned, seconds, rate, later_seconds=0):
    """The progress line of a batch: the partitions done and, if they are known, the bytes, the rate and the time left.

    `seconds` have passed, and `rate` is in bytes per second. The batches after this one are planned to take
    `later_seconds`.
    """
    parts = [f"{done} of {counted(partitions, 'partition')}"]
    if copied is not None and planned:
        parts.append(f"{size(min(copied, planned))} of {size(planned)}")
        if rate:
            left = max(0, planned - copied) / rate
            parts += [f"{size(rate)}/s", f"{duration(left)} left"]
            if later_seconds:
                parts.append(f"{duration(left + later_seconds)} with the batches after it")
    return f"{name}: {', '.join(parts)}, {duration(seconds)} so far"


def copied(measured, planned):
    """The measured and the planned bytes as text; empty if either of them is unknown."""
    return f"{size(measured)} copied ({size(planned)} planned)" if measured is not None and planned else ""


def counted(number, noun):
    """A number with its noun, for example `1 batch`."""
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


def summed_up(seconds, figures, elections):
    """The summary of a run: its time, the measured and planned time and bytes of its batches, and its elections.

    `figures` has a dict for each batch: seconds, planned_seconds, copied_bytes and planned_bytes. A total is left out
    unless all batches have the figure. `elections` has the number of leaders that each election changed.
    """
    elected = f"elected {counted(sum(elections), 'leader')}"
    if not figures:
        batches = (
            f"moved no replica, and {elected} in {counted(len(elections), 'batch')}"
            if elections
            else "completed no batch"
        )
        return f"The run ended after {duration(seconds)}. It {batches}."
    took, planned = (sum(each[key] for each in figures) for key in ("seconds", "planned_seconds"))
    said = f"its {counted(len(figures), 'batch')} took {duration(took)}"
    if all(each["planned_seconds"] for each in figures):
        said += f" ({duration(planned)} planned at the throttle)"
    if all(each["copied_bytes"] is not None and each["planned_bytes"] for each in figures):
        said += ", " + copied(*(sum(each[key] for each in figures) for key in ("copied_bytes", "planned_bytes")))
    return f"The run ended after {duration(seconds)}: {said}.{f' It {elected}.' if elections else ''}"


class ActionModule(ActionBase):
    """Runs each task `kafka_reassign`. Most tasks call the module once; a task that waits calls it many times."""

    TRANSFERS_FILES = False
    tool_starts = 0

    @property
    def moves(self):
        """True while a batch runs; False before it starts, or if only the cluster is inspected."""
        return bool(self.given.get("target")) and not self.given.get("before")

    def tell(self, event, line, **further):
        """Print a line. The next call of the module writes it to the journal, with `further` values for programs."""
        say(line)
        self.entries.append({"event": event, "said": line, **further})

    def run(self, tmp=None, task_vars=None):
        """Run the task. Failures are returned, not raised, because Ansible doesn't retry a task whose plugin raises."""
        result = super().run(tmp, task_vars)
        self.task_vars, self.entries = task_vars, []
        self.given = {**self._task.args.get("guards", {}), **self._task.args}
        self.reactions = dict(REACTIONS, **(self.given.get("reactions") or {}))
        try:
            result.update(self.answer())
        except AnsibleActionFail as error:
            result.update(failed=True, msg=str(error))
        result.update(tool_starts=self.tool_starts, batch=self.given.get("batch", ""))
        return result

    def answer(self):
        """The result of the task."""
        given, stray = self.given, self.task_vars.get("_raw_params", "")
        if problem := check_settings(self.reactions, given.get("lag_limits"), given.get("window"), stray):
            raise AnsibleActionFail(problem)
        if (stopped := given.get("stopped")) and given.get("journal"):
            self.tell("stopped", f"The run stopped {stopped.rstrip(' .')}.")
        own = {"look": self.waited, "summary": self.summary}
        return own.get(given.get("ask", "look"), self.module)()

    def summary(self):
        """Print the measured and planned time and bytes of the run's batches."""
        found = self.module()
        if self.given.get("journal"):
            self.tell("summary", summed_up(found["seconds"], found["figures"], found["elections"]))
            self.module(ask="note")
        return found

    def waited(self):
        """Wait for a batch. Write its begin to the journal, and at its end its measured and planned figures."""
        name, noted = self.given.get("name", ""), self.moves and not self.given.get("once")
        if noted and not self.given.get("so_far"):
            self.entries.append({"event": "begin", "said": f"{name} began."})
        found = self.wait()
        if noted and "held" not in found:
            self.ended(name, found)
        return found

    def ended(self, name, found):
        """Print the batch's measured and planned time and bytes, and how often Kafka's tools were started."""
        figures = {
            "batch": self.given.get("batch", ""),
            "seconds": round(time.monotonic() - self.started),
            "planned_seconds": int(self.given.get("planned_seconds") or 0),
            "copied_bytes": None,
            "planned_bytes": int(self.given.get("planned_bytes") or 0),
        }
        if figures["planned_bytes"]:
            try:
                figures["copied_bytes"] = self.module(ask="measure")["copied_bytes"]
            except AnsibleActionFail as error:
                say(f"How many bytes were copied is unknown: {error}")
        took = duration(figures["seconds"])
        if figures["planned_seconds"]:
            took += f" ({duration(figures['planned_seconds'])} planned at the throttle)"
        amount = copied(figures["copied_bytes"], figures["planned_bytes"])
        reached = f"{found.get('reached', 0)} of {counted(found['partitions'], 'partition')} "
        reached += "is where it should be" if found["partitions"] == 1 else "are where they should be"
        before = int(self.given.get("tool_starts", 0))
        starts = f"Kafka's tools were started {counted(before, 'time')} for it, "
        starts += f"{counted(self.tool_starts, 'time')} to wait and measure"
        said = f"{name} ended after {took}: {', '.join(filter(None, (amount, reached)))}. {starts}."
        self.tell("end", said, **({"figures": figures} if figures["batch"] else {}))
        self.module(ask="note")

    def wait(self):
        """Look repeatedly until the batch is complete or, before a batch, until nothing holds the run.

        Returns the last look and how the wait ended: `failed` with `cancel` and `msg`, `finish` with the reasons to
        stop before the next batch, or `held` with the reason.
        """
        self.started, self.parent = time.monotonic(), os.getppid()
        self.held_since, self.hold, self.finish, self.told = None, "", [], set()
        self.rate, self.reports = int(self.given.get("throttle_bytes_per_sec") or 0), 0
        self.measured, self.unstored = (0, 0), ""  # At the last progress line: seconds since the start, and bytes.
        self.last = {"moving": [], "elsewhere": [], "partitions": 0}
        # A wait that ended to report a hold goes on as if it hadn't ended.
        vars(self).update(self.given.get("so_far") or {})
        # The cluster was inspected right before the batch, so the next inspection is due later.
        next_cluster = self.started + (float(self.given["guard_seconds"]) if self.moves else 0)
        next_line, second_looks, reported = self.started + self.measured[0] + _LINE_SECONDS, 0, self.hold
        while True:
            now = time.monotonic()
            deep, measure = now >= next_cluster, now >= next_line
            look = self.look(deep, measure)
            self.unstored = look.get("unstored", self.unstored)
            next_cluster = now + float(self.given["guard_seconds"]) if deep else next_cluster
            if (deep or look["reasons"]) and (cancel := self.judge(self.reasons(look))):
                return {**look, "failed": True, "cancel": True, "msg": cancel}
            if measure:
                next_line = now + _LINE_SECONDS
                self.line(look)
            self.follow_throttle(look)
            reported = reported and self.hold
            if self.hold and not reported and self.given.get("return_when_held") and self.reports < _REPORTS:
                self.reports += 1
                kept = ("started", "held_since", "hold", "measured", "unstored", "tool_starts", "rate", "reports")
                return {**look, "held": self.hold, "finish": [], "so_far": {key: getattr(self, key) for key in kept}}
            complete = self.complete(look)
            if complete and look.get("elsewhere") and second_looks < int(self.given.get("second_looks", 0)):
                # The tool asks the controller what moves, but asks a broker where replicas are. That broker may lag.
                second_looks += 1
            elif complete:
                return {**look, "finish": self.finish}
            elif (over := self.over()) is not None:
                return {**look, "failed": True, "cancel": False, "msg": over}
            self.pause(min(float(self.given["delay"]), 2) if complete else float(self.given["delay"]))

    def pause(self, seconds):
        """Sleep. If the playbook was killed, this process is still there, and ends here."""
        if os.getppid() != self.parent:
            raise AnsibleActionFail("the playbook was ended")
        time.sleep(seconds)

    def reasons(self, look):
        """The reasons not to go on, by guard. Empty if no partition is pending, unless `only_finish`."""
        only = self.given.get("only_finish")
        if look.get("pending") == [] and not only:
            return {}
        found = {**look["reasons"], **self.clock(), **({"log_dirs": self.unstored} if self.unstored else {})}
        if look["rc"] != 0:
            # The exception's name alone: the rest, such as a time, changes and would look like a new reason.
            first = re.search(r"\w+Exception", look["stderr"])
            said = first.group() if first else look["stderr"][:100]
            found.setdefault("no_answer", f"kafka-reassign-partitions --verify fails: {said}")
        return {guard: why for guard, why in found.items() if not only or self.reactions[guard] == "finish"}

    def judge(self, reasons):
        """Sort the reasons by their reactions and print the new ones. Returns the reasons to cancel as one text."""
        of = {word: [said for guard, said in reasons.items() if self.reactions[guard] == word] for word in _WORDS}
        self.finish = of["finish"]
        for said in [each for each in self.finish if self.moves and each not in self.told]:
            self.tell("finish", f"{self.given['name']} goes on to its end, then the run stops: {said}.")
        self.told.update(self.finish)
        self.holds("; ".join(of["hold"]))
        return "; ".join(of["cancel"])

    def complete(self, look):
        """True if no partition of the batch moves anymore or, before a batch, if the run isn't held or must end."""
        if self.given.get("once"):
            return True
        if self.moves:
            return look["rc"] == 0 and not look["moving"]
        return bool(self.finish) or not self.hold

    def over(self):
        """Why the wait ends before the batch is complete; None to keep waiting."""
        now = time.monotonic()
        if self.hold and now - self.held_since > float(self.given["hold_seconds"]):
            return f"held for {duration(now - self.held_since)}: {self.hold}"
        late = now - self.started > float(self.given["wait_seconds"])
        return f"it takes longer than {duration(float(self.given['wait_seconds']))}" if late else None

    def look(self, deep, measure):
        """Ask how far the batch is. `deep` also inspects the cluster, and `measure` also adds up the copied bytes."""
        try:
            found = self.module(look_at_cluster=deep, measure=measure, verify=self.moves)
        except AnsibleActionFail as error:
            # This happens, for example, while the connection to the admin host is broken.
            found = {**self.last, "rc": 1, "stderr": str(error), "reasons": {"no_answer": str(error)}}
        if self.given.get("once") and "no_answer" in found["reasons"]:
            raise AnsibleActionFail(found["reasons"]["no_answer"])
        self.last = {**found, "rc": found.get("rc", 0), "moving": found.get("moving", [])}
        return self.last

    def module(self, **further):
        """Call the module on the admin host, with `further` arguments, and return its result."""
        arguments = {key: value for key, value in self.given.items() if key not in _OWN}
        arguments.update(further, entries=self.entries)
        try:
            found = self._execute_module("kafka_reassign", module_args=arguments, task_vars=self.task_vars)
        except AnsibleConnectionFailure as error:
            found = {"unreachable": True, "msg": str(error)}
        if found.get("failed") or found.get("unreachable"):
            # If the module raised an exception, the place of its text depends on Ansible's version.
            said = found.get("msg") or getattr(getattr(found.get("exception"), "event", None), "msg", "")
            said = " ".join(filter(None, (said, (found.get("module_stderr") or "")[-500:])))
            raise AnsibleActionFail(said if "calls" in found else f"the admin host has no answer: {said}")
        self.entries = []
        self.tool_starts += len(found["calls"])
        for said in found.get("said", []):
            say(said)
        return found

    def follow_throttle(self, look):
        """If the rate in the throttle file has changed, set it for the partitions that still move."""
        wanted, problem = look.get("throttle_bytes_per_sec"), look.get("throttle_problem", "")
        if problem and problem not in self.told:
            self.told.add(problem)
            say(f"{problem}. The throttle stays as it is.")
        if self.moves and self.rate and wanted and wanted != self.rate:
            try:
                self.module(ask="throttle", throttle_bytes_per_sec=wanted)
                self.rate = wanted
            except AnsibleActionFail as error:
                # Kafka's tools may fail for some seconds after a broker has died. The next look tries again.
                say(f"The throttle couldn't be changed yet: {error}")

    def clock(self):
        """Reasons to stop that don't depend on the cluster: the window, the expiry, and the number of batches."""
        now, found = datetime.now(timezone.utc), {}  # noqa: UP017  (Ansible 2.17 runs on Python 3.10 too)
        window, expiry = self.given.get("window"), self.given.get("valid_until")
        if window and not inside(window, now):
            found["window"] = f"outside the maintenance window {window}{'' if ' ' in window else ' UTC'}"
        if expiry and now.strftime("%Y-%m-%dT%H:%M:%SZ") >= expiry:
            found["expiry"] = f"the plan was valid until {expiry}"
        if self.given.get("batches_left") is not None and int(self.given["batches_left"]) <= 0:
            found["batches"] = "this run has started as many batches as it may"
        return found

    def holds(self, hold):
        """Print when the run is held for a new reason, and when it goes on."""
        now = time.monotonic()
        if hold and _AMOUNT.sub("", hold) != _AMOUNT.sub("", self.hold):
            self.held_since = self.held_since or now
            left = duration(max(0, float(self.given["hold_seconds"]) - (now - self.held_since)))
            word, meanwhile = self.given.get("word", "HELD"), self.given.get("meanwhile", _MEANWHILE[self.moves])
            self.tell(
                "held",
                f"{word}, {self.given['name']}: {hold}. {meanwhile} The run goes on by itself when this is over; if it "
                f"isn't in {left}, the run stops.",
            )
        if self.hold and not hold:
            self.tell("goes_on", f"GOES ON, {self.given['name']}, no longer held: {self.hold}.")
            self.held_since = None
        self.hold = hold

    def line(self, look):
        """Print how far the batch is."""
        if self.moves and look["rc"] == 0:
            done = look["partitions"] - len(look["moving"])
            planned, later = (int(self.given.get(key) or 0) for key in ("planned_bytes", "later_seconds"))
            seconds, bytes_now, rate = time.monotonic() - self.started, look["copied_bytes"], 0
            if bytes_now is not None:
                # The rate since the previous line, so that a changed throttle is visible.
                before, bytes_before = self.measured
                rate = max(0, bytes_now - bytes_before) / (seconds - before)
                self.measured = (seconds, bytes_now)
            line = progress(self.given["name"], done, look["partitions"], bytes_now, planned, seconds, rate, later)
            self.tell("progress", line)
