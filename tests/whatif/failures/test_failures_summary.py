"""The rows of a study of failures as one document: the worst of each state, how many, and which topics it hits."""

from __future__ import annotations

from dataclasses import replace

from clusters import no_racks, spec_of
from failure_studies import NO_LIMITS, planned
from msgspec import structs
from plan_documents import typed

from planner.model.spec import Changes, NewPartitions
from planner.plan.document.codec import as_json
from planner.whatif.failures import failure_rows
from planner.whatif.failures.failures_summary import FailuresDocument, Subject, section

SPEC = spec_of(
    no_racks(1, 2, 3),
    {"t": [[1, 2], [1]], "u": [[2, 3]]},
    sizes=7,
    config={"u": (("min.insync.replicas", "2"),)},
    changes=Changes(rebalance="none"),
)


def told(spec, kinds, plan=None):
    """The document of a spec with these kinds of failures."""
    subject = Subject.of(spec, plan)
    wanted = failure_rows.all_scenarios(subject.problem, kinds, 1000, 0)
    rows = failure_rows.run(failure_rows.study(subject.spec, subject.problem, subject.batches, wanted), wanted)
    return as_json(FailuresDocument.of(section(subject, wanted, rows), "c", plan))


def test_the_worst_failure_is_the_one_that_takes_most_offline():
    """With how many others take any, and the topics that it hits; refused writes come after what is offline."""
    (kind,) = told(SPEC, ["brokers"])["kinds"]
    (state,) = kind["states"]

    assert (3, 1, 3) == (kind["scenarios"], state["with_offline"], state["with_writes_refused"])
    assert ("broker 1", 1, 7) == tuple(state["worst"][key] for key in ("failed", "offline", "lost_bytes"))
    assert [{"topic": "t", "offline": 1, "writes_refused": 1, "lost": 1}] == state["worst"]["topics"]


def test_single_brokers_are_listed_and_pairs_are_not():
    """Who leads then is told for each."""
    found = told(SPEC, ["brokers", "pairs"])

    assert ["brokers", "pairs"] == [kind["of"] for kind in found["kinds"]]
    assert ["broker 1", "broker 2", "broker 3"] == [each["failed"] for each in found["scenarios"]]
    assert [{"broker": 2, "leaders": 1}] == found["scenarios"][0]["states"][0]["moved_to"]
    assert [{"broker": 3, "leaders": 1}] == found["scenarios"][1]["states"][0]["moved_to"]


def test_partitions_to_be_made_are_not_there_to_fail():
    """That is said, and what else the numbers rest on."""
    changes = replace(SPEC.changes, new_partitions=(NewPartitions("n", 0, 4, 1),))
    found = told(replace(SPEC, changes=changes), ["brokers"])

    assert 1 == found["kinds"][0]["states"][0]["worst"]["offline"]
    assert "partitions that the plan makes anew aren't counted" == found["notes"][0]
    assert "1 partition with a single replica today: offline without that broker" in found["notes"]
    assert any(note.startswith("no ISR is known of 3 partitions") for note in found["notes"])


def test_a_plan_has_a_state_for_each_batch():
    """Between today and what is planned."""
    spec = replace(SPEC, changes=Changes(remove_brokers=(3,)))
    _, steps = planned(spec, NO_LIMITS)
    found = told(spec, ["brokers"], structs.replace(typed({}), batches=steps))

    assert (typed({}).plan_id, 1) == (found["plan_id"], found["batches"])
    assert ["today", "batch 1", "planned"] == [state["state"] for state in found["kinds"][0]["states"]]
