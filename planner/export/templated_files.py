"""Makes the files of a plan or a restart that Kafka's tools, Ansible and Terraform read: the same bytes each time.

The templates are in `templates/`, one folder per reader. Files that end in `.j2` are rendered in the environment
of `generated_text`; the others are copied. Nothing is decided here: the plan says what moves, when and why.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from planner.export import ansible_vars
from planner.model.cluster import PartitionKey, partition_name
from planner.model.document_fields import TopicPartition
from planner.model.file_reading import digest, resource
from planner.model.formats import replica_list
from planner.model.generated_text import canonical_json, environment
from planner.plan.document.partition_types import StepRow
from planner.plan.document.plan_types import RESTART_FILE, STATES_FILE, Plan, RestartDocument

Files = dict[str, bytes]

ROLE = "ansible/roles/kafka_reassign"
_TERRAFORM = "terraform/kafka_topics.auto.tfvars.json"
# A file takes the place where Python would keep a compiled copy of the plugin, so that no unreviewed copy can run.
_NO_BYTECODE = {
    f"{ROLE}/action_plugins/__pycache__": b"Not a folder, so that Python keeps no compiled copy of the plugin here.\n"
}
_REASSIGNMENT, _ROLLBACK, _NEW = "reassignment.json", "rollback.json", "new-partitions.json"


def files(plan: Plan) -> Files:
    """The output folder of a plan, relative path → bytes, sorted by path.

    Without plan.json, bound.json, the reports, the candidates' table and SHA256SUMS. Brokers are ids, a partition's
    first replica is its preferred leader. Kafka's formats: `kafka-reassign-partitions` (KIP-455),
    `kafka-leader-election` (KIP-460).
    """
    kafka = _plan_files(plan)
    for name, batch in zip(ansible_vars.batch_names(plan), plan.batches, strict=True):
        # Kafka refuses an empty list, so there is no file for it.
        if moves := ansible_vars.moves(batch.partitions):
            kafka |= {f"batches/{name}/{file}": content for file, content in _reassignments(moves).items()}
        if batch.elect:
            kafka[f"batches/{name}/preferred-replica.json"] = _elections(each.key for each in batch.elect)
    # The role has its own copies of the files that it gives to Kafka's tools.
    role_files = (_REASSIGNMENT, _ROLLBACK, _NEW)
    copies = {path: content for path, content in kafka.items() if path.startswith("batches/") or path in role_files}
    templates = [("ansible", path) for path in template_paths("ansible")]
    ansible = _playbooks(templates, ansible_vars.values(plan), copies | _role_only(plan))
    terraform = _from_template(f"{_TERRAFORM}.j2", topics=plan.declared_topics)
    return dict(sorted((kafka | ansible | {_TERRAFORM: terraform}).items()))


def _plan_files(plan: Plan) -> Files:
    """The files for the whole plan, written even if their lists are empty, except the file for new partitions."""
    moves = ansible_vars.moves(plan.partitions)
    # For the role: the replicas of new partitions by number, and the arguments of kafka-topics.
    new_topics = {
        topic.topic: {
            "partitions_before": topic.partitions_before,
            "partitions": topic.partitions,
            "replicas": {
                str(number): replica_list(replicas)
                for number, replicas in enumerate(topic.replicas, topic.partitions_before)
            },
            "replica_assignment": topic.replica_assignment,
            "config_options": [
                word for key, value in sorted(topic.config.items()) for word in ("--config", f"{key}={value}")
            ],
        }
        for topic in plan.new_topics
    }
    return {
        **_reassignments(moves),
        "preferred-replica.json": _elections(each.key for each in ansible_vars.elections(plan).apply),
        "topics-to-move.json": _from_template(
            "kafka/topics-to-move.json.j2", topics=sorted({move.topic for move in moves})
        ),
        **({_NEW: canonical_json(new_topics).encode()} if new_topics else {}),
    }


def _reassignments(moves: Iterable[StepRow]) -> Files:
    """The reassignment of these steps, and its rollback."""
    steps = list(moves)
    return {
        _REASSIGNMENT: _replica_lists((each, each.replicas, each.log_dirs) for each in steps),
        _ROLLBACK: _replica_lists((each, each.replicas_before, each.log_dirs_before) for each in steps),
    }


def _replica_lists(rows: Iterable[tuple[TopicPartition, Sequence[int], Sequence[str] | None]]) -> bytes:
    """Kafka's reassignment JSON: each partition with its replicas and, if planned, their log dirs."""
    lists = [(each.topic, each.partition, replicas, dirs or ()) for each, replicas, dirs in rows]
    return _from_template("kafka/reassignment.json.j2", partitions=lists)


def _elections(partitions: Iterable[PartitionKey]) -> bytes:
    return _from_template("kafka/preferred-replica.json.j2", partitions=list(partitions))


def _playbooks(
    templates: Iterable[tuple[str, str]], values: Mapping[str, object], copies: Files, digests: Mapping[str, str] = {}
) -> Files:
    """The playbooks and the role with its own `copies`; their `digests` are known or computed here.

    Each template is a folder of `templates/` and a path in it.
    """
    context = {**values, "digests": {path: digests.get(path) or digest(copies[path]) for path in sorted(copies)}}
    files: Files = {}
    for folder, path in templates:
        source, goal = f"{folder}/{path}", f"ansible/{path.removesuffix('.j2')}"
        is_template = path.endswith(".j2")
        files[goal] = _from_template(source, **context) if is_template else resource("templates", source).read_bytes()
    return files | _NO_BYTECODE | {f"{ROLE}/files/{path}": content for path, content in copies.items()}


# The files that a restart shares with plans: settings, the module that queries Kafka and waits, and tasks that call it.
_SHARED = ("ansible.cfg", "inventory/", *(f"roles/kafka_reassign/{each}" for each in ("action_plugins/", "library/")))
_SHARED += tuple(
    f"roles/kafka_reassign/{each}"
    for each in ("module_utils/", "meta/main.yml", "tasks/stage.yml", "tasks/unstage.yml", "vars/main/kafka_tools.yml")
)


def restart_files(restart: RestartDocument, states: bytes) -> Files:
    """The output folder of a restart, relative path → bytes, sorted by path: the playbook, and what it executes.

    `states` are today's replica lists; the restart has their digest, because its steps are valid only for these lists.
    """
    leaderless = [name for topic in restart.leaderless for name in topic.names]
    copies = {
        RESTART_FILE: restart.encoded(),
        STATES_FILE: states,
        "foretold.json": canonical_json(
            {
                "refusing": [step.number for step in restart.refusing],
                **{
                    str(step.number): sorted(
                        {name for topic in (*step.writes_refused, *step.offline, *step.unclean) for name in topic.names}
                    )
                    for step in restart.steps
                },
            }
        ).encode(),
        **({"leaderless.json": canonical_json({"today": leaderless}).encode()} if leaderless else {}),
        **{
            f"elections/{step.number}.json": _elections(
                (topic.topic, each) for topic in step.elect for each in topic.partitions
            )
            for step in restart.steps
            if step.elect
        },
    }
    values = {
        "restart_id": restart.restart_id,
        "kafka_bin_dir": restart.kafka_bin_dir,
        "bootstrap_servers": restart.bootstrap_servers,
        "racks_of_broker": {broker: step.rack for step in restart.steps for broker in sorted(step.brokers)},
    }
    templates = [("ansible", path) for path in template_paths("ansible") if path.startswith(_SHARED)]
    templates += [("restart", path) for path in template_paths("restart")]
    playbooks = _playbooks(templates, values, copies, {STATES_FILE: restart.states_sha256})
    return dict(sorted(({RESTART_FILE: copies[RESTART_FILE]} | playbooks).items()))


def _role_only(plan: Plan) -> Files:
    """Files that only the playbooks read: replica lists passed through, leaders with their rollback, and leaderless."""
    waiting = ansible_vars.leaderless(plan)
    states = {
        partition_name(*key): [replica_list(replicas) for replicas in lists]
        for key, lists in ansible_vars.states(plan).items()
    }
    files = {
        "states.json": canonical_json(states).encode(),
        "leaders.json": canonical_json(ansible_vars.leaders(plan)).encode(),
        **{
            f"batches/{name}/preferred-replica-rollback.json": _elections(each.key for each in elect.rollback)
            for name, elect in zip(ansible_vars.batch_names(plan), ansible_vars.batch_elections(plan), strict=True)
            if elect.rollback
        },
        **({"leaderless.json": canonical_json(waiting).encode()} if waiting else {}),
    }
    if unpreferred := ansible_vars.unpreferred(plan):
        # The rollback elects leaders that weren't preferred. Kafka elects only the first replica, so each list is set
        # with its old leader first, and then set as it was.
        leader_first = [
            (row, sorted(row.replicas_before, key=lambda each: each != row.leader_before), None) for row in unpreferred
        ]
        files |= {
            "unpreferred-first.json": _replica_lists(leader_first),
            "unpreferred-elect.json": _elections(each.key for each in unpreferred),
            "unpreferred-back.json": _replica_lists((row, row.replicas_before, None) for row in unpreferred),
        }
    return files


def _from_template(name: str, **values: Any) -> bytes:
    return environment().get_template(name).render(values).encode()


@cache
def template_paths(folder: str) -> tuple[str, ...]:
    """The templates and plain files below a folder of `templates/`, by relative path."""
    root = resource("templates", folder)
    paths = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return tuple(sorted(path.relative_to(root).as_posix() for path in paths))
