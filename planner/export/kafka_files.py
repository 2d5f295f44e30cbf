"""plan.json → every file that Kafka's tools, Ansible and Terraform read: pure, byte for byte the same each time.

The templates lie in `templates/`, one folder a reader. Those that end in `.j2` go through our own Jinja layer; the
others are copied as they are. Nothing is decided here: what moves, when and why was settled in the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from planner.export import ansible_vars
from planner.model.file_reading import resource
from planner.model.quoting import canonical_json
from planner.plan import declared_topics
from planner.plan.templates import environment

__all__ = ["canonical_json", "files"]

Plan = Mapping[str, Any]
Files = dict[str, bytes]

ROLE = "ansible/roles/kafka_reassign"


def files(plan: Plan) -> Files:
    """The output folder of `plan` (a plan.json document), relative path → bytes, sorted by path.

    Everything but plan.json itself, the report and the candidates' table. Brokers are ids, a partition's first
    replica is its preferred leader. Kafka's formats: `kafka-reassign-partitions` (KIP-455), `kafka-leader-election`
    (KIP-460).
    """
    kafka = _whole_plan(plan) | _all_batches(plan)
    rendered = kafka | _ansible(plan, kafka) | _terraform(plan)
    return {path: rendered[path] for path in sorted(rendered)}


def _whole_plan(plan: Plan) -> Files:
    """The files for the whole plan at once; written even where they list nothing."""
    moves = ansible_vars.moves(plan["partitions"])
    elect = ansible_vars.elections(plan)["apply"]
    topics = sorted({move["topic"] for move in moves})
    return {
        "reassignment.json": _replica_lists(moves, "replicas"),
        "rollback.json": _replica_lists(moves, "replicas_before"),
        "preferred-replica.json": _elections(elect),
        "topics-to-move.json": _from_template("kafka/topics-to-move.json.j2", topics=topics),
        **_new_partitions(plan),
    }


def _new_partitions(plan: Plan) -> Files:
    """What is made of new partitions; no file where nothing is."""
    made = ansible_vars.new_partitions(plan)
    return {"new-partitions.json": canonical_json(made).encode()} if made else {}


def _all_batches(plan: Plan) -> Files:
    return {
        f"batches/{name}/{file}": content
        for name, batch in zip(ansible_vars.batch_names(plan), plan["batches"], strict=True)
        for file, content in _batch(batch).items()
    }


def _batch(batch: Plan) -> Files:
    """One batch's files. Kafka refuses an empty list, so what has nothing to do has no file."""
    moves = ansible_vars.moves(batch["partitions"])
    reassignment = {
        "reassignment.json": _replica_lists(moves, "replicas"),
        "rollback.json": _replica_lists(moves, "replicas_before"),
    }
    election = {"preferred-replica.json": _elections(batch["elect"])}
    return (reassignment if moves else {}) | (election if batch["elect"] else {})


def _replica_lists(moves: Iterable[Plan], which: str) -> bytes:
    dirs = {"replicas": "log_dirs", "replicas_before": "log_dirs_before"}[which]
    rows = [(move["topic"], move["partition"], move[which], move.get(dirs, ())) for move in moves]
    return _from_template("kafka/reassignment.json.j2", partitions=rows)


def _elections(partitions: Iterable[Plan]) -> bytes:
    rows = [(partition["topic"], partition["partition"]) for partition in partitions]
    return _from_template("kafka/preferred-replica.json.j2", partitions=rows)


def _ansible(plan: Plan, kafka: Files) -> Files:
    """Playbooks and role, with the role's own copies of the files it executes."""
    named = ("reassignment.json", "rollback.json", "new-partitions.json")
    copies = {path: content for path, content in kafka.items() if path.startswith("batches/") or path in named}
    copies |= _role_only(plan)
    digests = {path: sha256(copies[path]).hexdigest() for path in sorted(copies)}
    values = ansible_vars.values(plan) | {"digests": digests}
    written = {
        f"ansible/{path.removesuffix('.j2')}": _from_template(f"ansible/{path}", **values)
        if path.endswith(".j2")
        else _shipped(f"ansible/{path}")
        for path in _template_paths("ansible")
    }
    return written | {f"{ROLE}/files/{path}": content for path, content in copies.items()}


def _role_only(plan: Plan) -> Files:
    """What only the playbooks read: the way of each partition, who leads, and how the leaders come back."""
    back = [
        (f"batches/{name}/preferred-replica-rollback.json", elect["rollback"])
        for name, elect in zip(ansible_vars.batch_names(plan), ansible_vars.batch_elections(plan), strict=True)
    ]
    off, waiting = ansible_vars.unpreferred(plan), ansible_vars.leaderless(plan)
    return {
        "states.json": canonical_json(ansible_vars.states(plan)).encode(),
        "leaders.json": canonical_json(ansible_vars.leaders(plan)).encode(),
        **{path: _elections(elect) for path, elect in back if elect},
        **(_unpreferred(off) if off else {}),
        **({"leaderless.json": canonical_json(waiting).encode()} if waiting else {}),
    }


def _unpreferred(partitions: Sequence[Plan]) -> Files:
    lists = [{key: each[key] for key in ("topic", "partition", "replicas_before")} for each in partitions]
    first = [
        {**each, "replicas": ansible_vars.led_first(partition)}
        for each, partition in zip(lists, partitions, strict=True)
    ]
    return {
        "unpreferred-first.json": _replica_lists(first, "replicas"),
        "unpreferred-elect.json": _elections(partitions),
        "unpreferred-back.json": _replica_lists(lists, "replicas_before"),
    }


def _terraform(plan: Plan) -> Files:
    """Variables for Terraform's `kafka_topic`."""
    path = "terraform/kafka_topics.auto.tfvars.json"
    return {path: _from_template(f"{path}.j2", topics=declared_topics.topics(plan))}


def _from_template(name: str, **values: Any) -> bytes:
    return environment().get_template(name).render(values).encode()


@cache
def _template_paths(folder: str) -> tuple[str, ...]:
    root = resource("templates", folder)
    return tuple(sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()))


def _shipped(name: str) -> bytes:
    return Path(resource("templates", name)).read_bytes()
