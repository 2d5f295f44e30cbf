"""plan.json → every file that Kafka's tools, Ansible and Terraform read: pure, byte for byte the same each time.

The templates lie in `templates/`, one folder a reader. Those that end in `.j2` go through our own Jinja layer; the
others are copied as they are. Nothing is decided here: what moves, when and why was settled in the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2

from planner.quoting import FILTERS, canonical_json
from planner.resources import resource

__all__ = ["canonical_json", "files"]

Plan = Mapping[str, Any]
Files = dict[str, bytes]

ROLE = "ansible/roles/kafka_reassign"

# Kafka creates these itself; Terraform must not.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})


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
    moves = _moves(plan["partitions"])
    elect = [p for p in plan["partitions"] if p["leader_before"] != p["replicas"][0]]
    topics = sorted({move["topic"] for move in moves})
    return {
        "reassignment.json": _replica_lists(moves, "replicas"),
        "rollback.json": _replica_lists(moves, "replicas_before"),
        "preferred-replica.json": _elections(elect),
        "topics-to-move.json": _from_template("kafka/topics-to-move.json.j2", topics=topics),
    }


def _all_batches(plan: Plan) -> Files:
    return {
        f"batches/{name}/{file}": content
        for name, batch in zip(_batch_names(plan), plan["batches"], strict=True)
        for file, content in _batch(batch).items()
    }


def _batch(batch: Plan) -> Files:
    """One batch's files. Kafka refuses an empty list, so what has nothing to do has no file."""
    moves = _moves(batch["partitions"])
    reassignment = {
        "reassignment.json": _replica_lists(moves, "replicas"),
        "rollback.json": _replica_lists(moves, "replicas_before"),
    }
    election = {"preferred-replica.json": _elections(batch["elect"])}
    return (reassignment if moves else {}) | (election if batch["elect"] else {})


def _batch_names(plan: Plan) -> list[str]:
    """`01`, `02` …: as wide as the last one needs, so that sorting by name is the order of execution."""
    numbers = [batch["number"] for batch in plan["batches"]]
    width = max(2, len(str(max(numbers, default=0))))
    return [f"{number:0{width}}" for number in numbers]


def _moves(partitions: Iterable[Plan]) -> list[Plan]:
    """The partitions that Kafka has to be told about: their replica list changes, be it only in its order."""
    return [p for p in partitions if list(p["replicas"]) != list(p["replicas_before"])]


def _replica_lists(moves: Iterable[Plan], which: str) -> bytes:
    rows = [(move["topic"], move["partition"], move[which]) for move in moves]
    return _from_template("kafka/reassignment.json.j2", partitions=rows)


def _elections(partitions: Iterable[Plan]) -> bytes:
    rows = [(partition["topic"], partition["partition"]) for partition in partitions]
    return _from_template("kafka/preferred-replica.json.j2", partitions=rows)


def _ansible(plan: Plan, kafka: Files) -> Files:
    """Playbooks and role, with the role's own copies of the files it executes."""
    copies = {path: content for path, content in kafka.items() if path.startswith("batches/")}
    copies |= {path: kafka[path] for path in ("reassignment.json", "rollback.json")}
    values = _ansible_values(plan, copies)
    written = {
        f"ansible/{path.removesuffix('.j2')}": _from_template(f"ansible/{path}", **values)
        if path.endswith(".j2")
        else _shipped(f"ansible/{path}")
        for path in _template_paths("ansible")
    }
    return written | {f"{ROLE}/files/{path}": content for path, content in copies.items()}


def _ansible_values(plan: Plan, copies: Files) -> dict[str, Any]:
    """What the role's templates name. No topic is among it: the role knows files, counts and digests only."""
    return {
        "plan_id": plan["plan_id"],
        "kafka_bin_dir": plan["execution"]["kafka_bin_dir"],
        "throttle_bytes_per_sec": plan["execution"]["throttle_bytes_per_sec"] or 0,
        "bootstrap_servers": plan["cluster"]["bootstrap_servers"],
        "partitions": len(_moves(plan["partitions"])),
        "brokers_of_direction": _brokers_of_direction(plan["brokers"]),
        "batches": _batch_summaries(plan),
        "digests": {path: sha256(copies[path]).hexdigest() for path in sorted(copies)},
    }


def _brokers_of_direction(brokers: Sequence[Plan]) -> dict[str, list[int]]:
    """Who must be live: a broker that leaves may be dead when the plan is applied, a new one when it is undone."""
    without = {"apply": "removed", "rollback": "added"}
    return {way: [broker["id"] for broker in brokers if broker["role"] != role] for way, role in without.items()}


def _batch_summaries(plan: Plan) -> list[dict[str, Any]]:
    moves = [_moves(batch["partitions"]) for batch in plan["batches"]]
    steps = Counter((move["topic"], move["partition"]) for batch in moves for move in batch)
    return [
        {
            "number": name,
            "partitions": len(own),
            "elect": len(batch["elect"]),
            "stepwise": any(steps[move["topic"], move["partition"]] > 1 for move in own),
        }
        for name, batch, own in zip(_batch_names(plan), plan["batches"], moves, strict=True)
    ]


def _terraform(plan: Plan) -> Files:
    """Variables for Terraform's `kafka_topic`: topics whose partitions go on differing in RF can't be told to it."""
    resized = {(p["topic"], len(p["replicas_before"]), len(p["replicas"])) for p in plan["partitions"]}
    topics = {
        topic["name"]: {key: topic[key] for key in ("partitions", "replication_factor", "config")}
        for topic in plan["topics"]
        if topic["name"] not in INTERNAL_TOPICS and _agrees(topic, resized)
    }
    path = "terraform/kafka_topics.auto.tfvars.json"
    return {path: _from_template(f"{path}.j2", topics=topics)}


def _agrees(topic: Plan, resized: Container[tuple[str, int, int]]) -> bool:
    """True where all partitions end with one replication factor.

    A new factor is always a whole topic's, so one partition that leaves an old one, (topic, old, new), speaks for all.
    """
    name, factor = topic["name"], topic["replication_factor"]
    return all(old == factor or (name, old, factor) in resized for old in topic["replication_factor_before"])


@cache
def environment() -> jinja2.Environment:
    """The one Jinja environment. Its delimiters are its own, since the playbooks it writes hold Jinja themselves."""
    environment = jinja2.Environment(
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
        loader=jinja2.FileSystemLoader(resource("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(FILTERS)
    return environment


def _from_template(name: str, **values: Any) -> bytes:
    return environment().get_template(name).render(values).encode()


@cache
def _template_paths(folder: str) -> tuple[str, ...]:
    root = resource("templates", folder)
    return tuple(sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()))


def _shipped(name: str) -> bytes:
    return Path(resource("templates", name)).read_bytes()
