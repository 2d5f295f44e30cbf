"""What `diff` shows of two plans: figures, limits, inputs, what was asked for, brokers, partitions, warnings."""

from __future__ import annotations

import json
from typing import Any

from folders import ROOT
from jsonschema import Draft202012Validator
from plan_documents import change, document, new_partitions, typed

from planner.approval import plan_diff
from planner.approval.plan_diff import SHOWN, figure_rows, first_steps, sections, verdict
from planner.cli.review import diff_view
from planner.report import markdown

SCHEMA = json.loads((ROOT / "schemas" / "plan-diff.schema.json").read_text(encoding="utf-8"))
A0, A1, B0 = (
    change("a", 0, [1, 9], [1, 4]),
    change("a", 1, [2, 9], [2, 4]),
    change("b", 0, [1, 2], [2, 1]),
)


def plan(changes: list[dict[str, Any]], *, number: int = 0, **top: Any) -> dict[str, Any]:
    """A plan document with this number as its id."""
    return document(changes, **{"plan_id": f"{number:064x}", **top})


def diff(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The difference of two plan documents."""
    return plan_diff.diff(typed(old), typed(new))


def lines(found: dict[str, Any]) -> dict[str, list[str]]:
    """The lines of each section, by its heading."""
    return {title: listed for title, _, listed in sections(found)}


def valid(found: dict[str, Any]) -> dict[str, Any]:
    """Checks that the difference fits its schema, and returns it."""
    assert [] == [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)]
    return found


def test_a_plan_does_not_differ_from_itself() -> None:
    """A plan compared with itself has no differences, and the verdict says so."""
    found = valid(diff(plan([A0]), plan([A0])))

    assert (True, [], []) == (found["equal"], figure_rows(found), sections(found))
    assert "nothing differs" in verdict(found)


def test_partitions_are_told_by_what_differs() -> None:
    """Partitions are listed by kind: only in one plan, with another target, found elsewhere."""
    elsewhere = change("a", 1, [3, 9], [2, 4])
    found = valid(diff(plan([A0, A1]), plan([change("a", 0, [1, 9], [1, 3]), elsewhere, B0], number=1)))

    assert {
        "Newly changed partitions": ["b-0: 1,2 → 2,1"],
        "Partitions with another target": ["a-0: 1,4 → 1,3"],
        "Partitions found elsewhere": ["a-1: 2,9 → 3,9"],
        "Other settings": [
            "batches.elect: a-1: [] → [1]",
            "partitions.leader_before: a-1: 2 → 3",
            'topics.name: b: none → "b"',
        ],
    } == lines(found)
    assert {
        "Partitions no longer changed": ["b-0: 1,2 → 2,1"],
        "Other settings": ['topics.name: b: "b" → none'],
    } == lines(diff(plan([A0, B0]), plan([A0], number=1)))


def test_another_log_dir_is_told() -> None:
    """Where the replica lists are equal, the log dirs tell the targets apart."""
    dirs = [change("a", 0, [1, 9], [1, 4]) | {"log_dirs_before": ["any", "/d1"]} for _ in range(2)]
    old, new = (each | {"log_dirs": ["any", path]} for each, path in zip(dirs, ("/d1", "/d2"), strict=True))
    moved = change("b", 0, [1, 2], [1, 2]) | {"log_dirs_before": ["/d1", "any"], "log_dirs": ["/d2", "any"]}
    found = lines(valid(diff(plan([old]), plan([new, moved], number=1))))

    assert ["a-0: 1,4 (log dirs any,/d1) → 1,4 (log dirs any,/d2)"] == found["Partitions with another target"]
    assert ["b-0: 1,2 → 1,2 (log dirs /d2,any)"] == found["Newly changed partitions"]


def test_other_batches() -> None:
    """The same changes in other batches are listed with both batch numbers."""
    old = document([A0, A1], [[A0], [A1]], plan_id=f"{0:064x}")
    new = document([A0, A1], [[A1], [A0]], plan_id=f"{1:064x}")

    assert {"Partitions in other batches": ["a-0: batch 1 → 2", "a-1: batch 2 → 1"]} == lines(valid(diff(old, new)))


def test_figures_of_both_plans() -> None:
    """Only the figures that differ are shown, with units; the document has all of them."""
    bound = plan([A0])["bound"] | {"bytes_moved": 2_000_000, "least_bytes_moved": 1_900_000, "gap_percent": 5.0}
    execution = plan([A0])["execution"] | {"seconds_at_throttle": 3_720}
    found = valid(diff(plan([A0]), plan([A0], number=1, bound=bound, execution=execution)))

    assert [
        ("bytes copied", "100 B", "2.00 MB", ""),
        ("proven minimum", "100 B", "1.90 MB", ""),
        ("above the proven minimum", "0 %", "5.27 %", ""),
        ("time at throttle", "1 s", "1 h 2 min", ""),
    ] == figure_rows(found)
    assert "replica_spread" in {row["name"] for row in found["figures"]}
    assert "bytes copied 100 B → 2.00 MB" in verdict(found)


def test_amounts_that_round_alike_are_told_exactly() -> None:
    """Amounts that round to the same text are shown exactly, because 121 MB → 121 MB says nothing."""
    old, new = (
        plan([A0])["bound"] | dict.fromkeys(("bytes_moved", "least_bytes_moved"), 120595097 + more) for more in (0, 9)
    )
    found = diff(plan([A0], bound=old), plan([A0], number=1, bound=new))

    exactly = ("120,595,097 B", "120,595,106 B", "")
    assert [("bytes copied", *exactly), ("proven minimum", *exactly)] == figure_rows(found)


def test_what_differs_by_less_than_is_shown_is_told_exactly() -> None:
    """Limits, disks, times and throttles that round to the same text are shown exactly too."""
    old, new = plan([A0]), plan([A0], number=1)
    for made, more in ((old, 0), (new, 9)):
        eta = {"key": "limits.eta", "limit": 90_000, "value": 80_000 + more}
        made["limits"] = [{"key": "limits.bytes_moved", "limit": 20 * 2**30, "value": 120_595_097 + more}, eta]
        made["brokers"] = [broker | {"disk_bytes": 10**12 + more} for broker in made["brokers"]]
        made["execution"] = made["execution"] | {"throttle_bytes_per_sec": 50_000_000 + more}
    found = valid(diff(old, new))

    assert ["limits.bytes_moved: plan 120,595,097 B → 120,595,106 B", "limits.eta: plan 80,000 s → 80,009 s"] == lines(
        found
    )["Limits"]
    assert lines(found)["Brokers"][0].endswith(": disk 1,000,000,000,000 B → 1,000,000,000,009 B")
    assert [("throttle", "50,000,000 B/s", "50,000,009 B/s", "")] == figure_rows(found)


def test_a_gate_reads_as_it_was_written() -> None:
    """A limit is shown as the YAML writes it: 20 GiB, not 21.5 GB."""
    old, new = plan([A0], limits=[]), plan([A0], number=1)
    new["limits"] = [{"key": "limits.bytes_moved", "limit": 20 * 2**30, "value": 2**30}]
    assert ["limits.bytes_moved: not set → 1.00 GiB of 20 GiB"] == lines(diff(old, new))["Limits"]


def test_gates_inputs_wishes_brokers_and_warnings() -> None:
    """Limits, inputs, changes, brokers, warnings and validity are listed with both values if they differ."""
    new = plan([A0], number=1)
    new["limits"] = [
        {"key": "limits.bytes_moved", "limit": 1000, "value": 90},
        {"key": "limits.eta", "limit": 9, "value": 1},
    ]
    new["inputs"] = [{"path": "expand.yaml", "sha256": "cd" * 32}, {"path": "more.txt", "sha256": "ef" * 32}]
    new["changes"] = new["changes"] | {"remove_brokers": []}
    new["brokers"] = [broker | {"rack": "b"} if broker["id"] == 3 else broker for broker in new["brokers"]][:-1]
    new["warnings"] = ["3 partitions under-replicated today"]
    new["validity"] = {
        "captured_at": "2026-11-20T09:59:59Z",
        "valid_for_seconds": 1,
        "valid_until": "2026-11-20T10:00:00Z",
    }

    assert {
        "Plan": ['valid until: none → "2026-11-20T10:00:00Z"'],
        "Limits": ["limits.bytes_moved: plan 100 B → 90 B", "limits.eta: not set → 1 s of 9 s"],
        "Inputs": [
            "expand.yaml: SHA-256 abababababab → SHA-256 cdcdcdcdcdcd",
            "more.txt: not read → SHA-256 efefefefefef",
        ],
        "Asked for": ["remove_brokers: [9] → none"],
        "Brokers": ["broker 3: rack a → b", "broker 9: only before (removed, rack a, disk unknown)"],
        "Warnings": ["+ 3 partitions under-replicated today"],
        "Other settings": [
            'validity.captured_at: none → "2026-11-20T09:59:59Z"',
            "validity.valid_for_seconds: none → 1",
        ],
    } == lines(valid(diff(plan([A0]), new)))


def test_windows_are_those_asked_for() -> None:
    """A plan that was made for other windows than those asked for says so; it asks for the same."""
    asked = plan([A0])
    windows = asked["balance"]["asked"]
    other = plan([A0], number=1, balance={**asked["balance"], "wanted": {**windows, "disk": "25%"}})
    found = valid(diff(asked, other))
    before = f"{windows['disk']}"
    assert [("balance.disk", before, f"{before}, planned with 25%")] == [
        (row["key"], row["before"], row["after"]) for row in found["changes"]
    ]
    assert "Other settings" not in lines(found)


def test_without_a_proof_the_minimum_is_unknown() -> None:
    """A plan without a proof has neither a minimum nor a gap, also if both plans copy nothing."""
    proven = plan([A0])
    found = valid(diff(proven, plan([A0], number=1, bound={**proven["bound"], "method": "none"})))
    figures = {row["name"]: row["after"] for row in found["figures"]}
    assert (None, None) == (figures["least_bytes_moved"], figures["gap"])


def test_rules_on_brokers() -> None:
    """Changed rules `apart` and `together` are listed; the field `proven` is left out, because nobody asks for it."""
    old, new = plan([A0]), plan([A0], number=1)
    rule = {"topics": ["a", "b"], "by": "broker", "sides": [[1, 2], [4]], "proven": True}
    old["spec"], new["spec"] = ({**old["spec"], "apart": [rule | more]} for more in ({}, {"proven": False}))
    assert "Asked for" not in lines(diff(old, new))
    del new["spec"]["apart"]
    new["spec"]["together"] = [["a", "b"]]
    assert [
        'apart: [{"by": "broker", "sides": [[1, 2], [4]], "topics": ["a", "b"]}] → none',
        'together: none → [["a", "b"]]',
    ] == lines(diff(old, new))["Asked for"]


def test_what_decides_which_plan_is_made() -> None:
    """Changed topic filters, resilience and choice are listed under what was asked for."""
    old, new = plan([A0]), plan([A0], number=1)
    new["spec"] = {**old["spec"], "survive": "rack", "topics": {"include": ["*"], "exclude": ["logs*"]}}
    new["choice"] = {**old["choice"], "rule": "most_even_within_bytes", "value": 5}
    assert [
        'topics: {"exclude": []} → {"exclude": ["logs*"]}',
        'resilience.survive: "none" → "rack"',
    ] == lines(diff(old, new))["Asked for"][:2]
    assert lines(diff(old, new))["Asked for"][2].endswith('→ {"rule": "most_even_within_bytes", "value": 5}')


def test_new_partitions() -> None:
    """New partitions are listed if only one plan makes them, or if their number or brokers differ."""

    def made(*lists: list[int]) -> dict[str, Any]:
        topic = {"topic": "n", "partitions_before": 0, "partitions": len(lists), "replication_factor": 1, "config": {}}
        return new_partitions(topic | {"replicas": list(lists), "replica_assignment": "1"})

    none, one, two, other = (
        plan([], number=at, new_partitions=each) for at, each in enumerate((None, made([1]), made([1], [2]), made([3])))
    )

    assert ["n: only after"] == lines(valid(diff(none, one)))["New partitions"]
    assert ["n: partitions 1 → 2, placed on other brokers"] == lines(diff(one, two))["New partitions"]
    assert ["n: placed on other brokers"] == lines(diff(one, other))["New partitions"]


def test_long_lists_are_bounded_and_the_rest_is_counted() -> None:
    """Of 100 changed partitions the first are shown and the rest are counted."""
    found = valid(diff(plan([]), plan([change("a", at, [1], [2]) for at in range(100)], number=1)))
    (title, count, shown), others = sections(found)

    assert ("Newly changed partitions", 100, SHOWN + 1, "and 90 more") == (title, count, len(shown), shown[-1])
    assert 100 == found["partitions"]["only_after"]["count"]
    assert ("Other settings", 1, ['topics.name: a: none → "a"']) == others


def test_markdown_takes_nothing_of_a_name_for_markup() -> None:
    """A warning is escaped in Markdown, because it may hold any text."""
    new = plan([A0], number=1, warnings=["`*b*` </details> @all"])
    text = markdown.render(diff_view(diff(plan([A0]), new)))

    assert "- ``+ `*b*` </details> @all``\n" in text
    assert text.startswith("# Plan 000000000000 → 000000000000:")
    assert 1 == text.count("<details>")


def test_bytes_that_are_unknown_in_one_plan_are_unknown() -> None:
    """If one plan has no sizes, its bytes and times are shown as unknown, not as 0."""
    new = plan([A0], number=1)
    new["cluster"] = new["cluster"] | {"sizes_known": False}
    rows = {name: (before, after) for name, before, after, _ in figure_rows(valid(diff(plan([A0]), new)))}
    assert {"bytes copied", "proven minimum", "above the proven minimum", "time at throttle"} == rows.keys()
    assert {"unknown"} == {after for _, after in rows.values()}
    assert "bytes copied 100 B → unknown" in verdict(diff(plan([A0]), new))


def test_a_field_that_differs_alike_is_told_once() -> None:
    """If all brokers' disks changed alike, one line names all the brokers."""
    new = plan([A0], number=1)
    new["brokers"] = [broker | {"disk_bytes": 4 * 10**12} for broker in new["brokers"]]
    assert ["brokers 1–4, 9: disk unknown → 4.00 TB"] == lines(diff(plan([A0]), new))["Brokers"]


def test_a_first_step_is_said_first() -> None:
    """If a plan is only a first step, the difference says so first, and names the plan; the same plan is named once."""
    left = {
        "limits": {"bytes_moved": 100, "replicas_moved": None, "leaders_changed": None},
        "partitions": 2, "brokers": [], "windows": [], "bytes_moved": 150, "replicas_moved": 2, "leaders_changed": 0,
        "steps_at_least": 2, "too_large": 0,
    }  # fmt: skip
    step = plan([A0], unfinished=left, complete=False)
    said = "FIRST STEP ONLY (budget: at most 100 B copied). Left: 2 partitions to change, 150 B to copy (2 replicas); "
    whole = f"{said}at least 2 more steps. That is plan 000000000000, "
    assert [f"{whole}before."] == first_steps(valid(diff(step, plan([A0], number=1))))
    assert [f"{whole}after."] == first_steps(diff(step, step))
    assert [] == first_steps(diff(plan([A0]), plan([A0])))
    assert markdown.render(diff_view(diff(step, step))).startswith("**FIRST STEP ONLY")
