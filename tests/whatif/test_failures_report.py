"""The report of `planner failures`: the worst failure of each state, the topics that it affects, and the rows shown."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from clusters import no_racks, spec_of
from failure_studies import NO_LIMITS, planned
from msgspec import structs
from plan_documents import row, typed
from report_documents import broker
from rich.console import Console

from planner.model.cluster import Broker
from planner.model.spec import Changes, NewPartitions
from planner.plan.document.codec import as_json
from planner.report import markdown, terminal
from planner.whatif import failure_simulation, failures_report
from planner.whatif.failures_report import FailuresDocument, Subject, view

SPEC = spec_of(
    no_racks(1, 2, 3),
    {"t": [[1, 2], [1]], "u": [[2, 3]]},
    sizes=7,
    config={"u": (("min.insync.replicas", "2"),)},
    changes=Changes(rebalance="none"),
)


def told(spec, kinds, plan=None):
    """The document for a spec with these kinds of failures."""
    subject = Subject.of(spec, plan)
    wanted = failure_simulation.all_scenarios(subject.problem, kinds, 1000, 0)
    study = failure_simulation.study(subject.spec, subject.problem, subject.batches, wanted)
    rows = failure_simulation.join_rows(each() for each in failure_simulation.questions(study, wanted))
    return as_json(failures_report.document(subject, wanted, rows))


def test_the_worst_failure_is_the_one_that_takes_most_offline():
    """The worst failure takes most partitions offline, then refuses most writes; its topics are named."""
    (kind,) = told(SPEC, ["brokers"])["kinds"]
    (state,) = kind["states"]

    assert (3, 1, 3) == (kind["scenarios"], state["with_offline"], state["with_writes_refused"])
    assert ("broker 1", 1, 7) == tuple(state["worst"][key] for key in ("failed", "offline", "lost_bytes"))
    assert [{"topic": "t", "offline": 1, "writes_refused": 1, "lost": 1}] == state["worst"]["topics"]


def test_single_brokers_are_listed_and_pairs_are_not():
    """Each single broker is listed with the next leaders; pairs aren't listed."""
    found = told(SPEC, ["brokers", "pairs"])

    assert ["brokers", "pairs"] == [kind["of"] for kind in found["kinds"]]
    assert ["broker 1", "broker 2", "broker 3"] == [each["failed"] for each in found["scenarios"]]
    assert [{"broker": 2, "leaders": 1}] == found["scenarios"][0]["states"][0]["moved_to"]
    assert [{"broker": 3, "leaders": 1}] == found["scenarios"][1]["states"][0]["moved_to"]


def test_partitions_to_be_made_are_not_there_to_fail():
    """Without a plan today's cluster fails, without new partitions and brokers; notes say what the numbers assume."""
    changes = replace(SPEC.changes, new_partitions=(NewPartitions("n", 0, 4, 1),), add_brokers=(Broker(9, None),))
    found = told(replace(SPEC, changes=changes), ["brokers"])

    assert 1 == found["kinds"][0]["states"][0]["worst"]["offline"]
    assert 9 not in {broker for each in found["scenarios"] for broker in each["brokers"]}
    assert "1 partition with a single replica today: offline without that broker" in found["notes"]
    assert any(note.startswith("ISR unknown of 3 partitions") for note in found["notes"])


def test_racks_that_a_plan_states_are_those_that_fail():
    """With a plan, the racks of set_racks fail, also today, and a note says so; without a plan, today's racks fail."""
    racked = spec_of({1: "a", 2: "b", 3: "b"}, {"t": [[1, 2]]}, changes=Changes(set_racks=((2, "a"),)))
    _, steps = planned(racked, NO_LIMITS)
    alone, corrected = (told(racked, ["racks"], plan) for plan in (None, structs.replace(typed({}), batches=steps)))

    said = "racks are those that changes.set_racks states, today too"
    assert ([False, True], [0, 1]) == (
        [said in each["notes"] for each in (alone, corrected)],
        [max(row["states"][0]["offline"] for row in each["scenarios"]) for each in (alone, corrected)],
    )


def test_a_plan_has_a_state_for_each_batch():
    """A plan has a state for each batch, between today and the end."""
    spec = replace(SPEC, changes=Changes(remove_brokers=(3,)))
    _, steps = planned(spec, NO_LIMITS)
    found = told(spec, ["brokers"], structs.replace(typed({}), batches=steps))

    assert (typed({}).plan_id, 1) == (found["plan_id"], found["batches"])
    assert ["today", "batch 1", "planned"] == [state["state"] for state in found["kinds"][0]["states"]]


def test_brokers_that_come_do_not_fail_today_and_those_that_left_not_afterwards():
    """Brokers that join don't fail today, and brokers that left don't fail later; racks fail with their brokers."""
    spec = spec_of({1: "a", 2: "b", 3: "b"}, {"t": [[1], [2], [3]]})
    changes = Changes(add_brokers=(Broker(4, "c"), Broker(5, "b")), remove_brokers=(3,))
    spec = replace(spec, changes=changes)
    _, steps = planned(spec, NO_LIMITS)
    held = [
        broker(3, "removed", (1, 1), (0, 0)),
        broker(4, "added", (0, 0), (1, 1)),
        broker(5, "added", (0, 0), (1, 1)),
    ]
    found = told(spec, ["brokers", "racks", "pairs"], structs.replace(typed({"brokers": held}), batches=steps))

    count = {(kind["of"], each["state"]): each["scenarios"] for kind in found["kinds"] for each in kind["states"]}
    assert {"brokers": 3, "racks": 2, "pairs": 3} == {of: rows for (of, when), rows in count.items() if when == "today"}
    assert {"brokers": 5, "racks": 3, "pairs": 10} == {of: count[of, "batch 1"] for of in ("brokers", "racks", "pairs")}
    assert {"brokers": 4, "racks": 3, "pairs": 6} == {of: count[of, "planned"] for of in ("brokers", "racks", "pairs")}
    listed = {each["failed"]: [state["state"] for state in each["states"]] for each in found["scenarios"]}
    assert "today" not in listed["broker 4"] + listed["rack c"]
    assert "today" in listed["rack b"]
    assert "planned" not in listed["broker 3"]


FACTS = {"offline": 0, "writes_refused": 0, "at_risk": 1, "lost": 0, "lost_bytes": 0, "leaders_moved": 2}


def state(name, offline=0, topics=(), **more):
    """A state of a kind of failure, with its worst failure."""
    worst = {**FACTS, "failed": "broker 1", "leaders_most": None, "over_capacity": None, "topics": list(topics)}
    return {"state": name, "with_offline": 1, "worst": {**worst, "offline": offline, **more}}


def document(*states, scenarios=()):
    """A document with one kind of failure."""
    kind = {"of": "3", "scenarios": 4, "explained": "all 4", "states": list(states)}
    told = {"cluster": "c", "plan_id": "0123456789abcdef", "notes": ["a_note"]}
    return row(FailuresDocument, told, batches=2, kinds=[kind], scenarios=list(scenarios))


def lines(found, *words):
    """The lines of the Markdown that contain all of these words."""
    return [line for line in markdown.render(view(found)).splitlines() if all(word in line for word in words)]


def test_of_the_batches_the_worst_is_shown():
    """Only the worst batch is shown between today and the plan; unknown values are dashes, not 0."""
    found = document(state("today"), state("batch 1", 1), state("batch 2", 5), state("planned"))

    assert [] == lines(found, "batch 1")
    (worst,) = lines(found, "batch 2, worst of 2")
    assert "| 5 |" in worst
    assert "any 3" in lines(found, "today", "broker 1")[0]


def test_topics_that_are_hit_are_told_and_are_no_markup():
    """Affected topics are named, and names are never markup; offline partitions aren't also counted as refused."""
    rows = [
        {"topic": "a|b*", "offline": 1, "writes_refused": 3, "lost": 0},
        {"topic": "c", "offline": 0, "writes_refused": 0, "lost": 1},
    ]
    found = document(state("today", 1, rows))
    console = Console(record=True, width=100, file=StringIO())
    terminal.show(view(found), console)

    (told,) = lines(found, "can't be written")
    assert "1 offline, 2 can't be written with acks=all" in told
    assert "`a" in told
    assert "a|b* 1 offline, 2 can't be written with acks=all" in " ".join(console.export_text().split())


def test_the_worst_brokers_come_first_and_the_rest_are_counted():
    """The worst brokers come first, and so do the new leaders with most partitions; the rest is counted."""
    each = [
        {
            "failed": f"broker {number}",
            "states": [
                {
                    "state": "today",
                    **FACTS,
                    "over_capacity": None,
                    "offline": number,
                    "moved_to": [{"broker": to, "leaders": to} for to in range(1, 9)],
                }
            ],
        }
        for number in range(14)
    ]
    found = document(state("today"), scenarios=each)
    shown = [line.split("|")[1].strip() for line in lines(found, "8: 8, 7: 7", "and 2 brokers")]

    assert [f"broker {number}" for number in range(13, 1, -1)] == shown
    assert 1 == len(lines(found, "2 milder failures left out here"))
