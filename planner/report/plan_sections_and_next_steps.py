"""plan.json → the sections of report.md and report.html, and what is left to do after a plan's screen or report.

The terminal shows the same tables in another order. What is left to do: the commands to type, what a refused plan
needs, and changes of topics that Terraform declares.
"""

import shlex
from pathlib import PurePath

from planner.execution.limits_and_safety import AT_LEAST, GATES_ON_BYTES, GATES_ON_RATES, LimitRow, gate_amount
from planner.model import formats
from planner.model.formats import amount, as_stated, brokers, counted, size
from planner.plan import headline
from planner.plan.bound_section import LONGEST_PROOF
from planner.plan.document.cluster_types import TopicRow
from planner.plan.document.plan_types import Plan
from planner.report import choice_tables, cluster_tables, requested, sentences, summary, verdict
from planner.report.plot_movement import Movement
from planner.report.view import Block, Facts, Joined, Lines, Name, Sentence, Value, ViewSection, visible

# This file has everything that the plan's screens and reports leave out.
SOURCE = "plan.json"
_LONGEST_FACT = 1_000
_COMPARED = "Compared with doing nothing and with Kafka's own placement"
_NEW_PARTITIONS = (
    "They are created before anything is reassigned, and copy no data. ",
    " and the rollback playbook keep them: Kafka can't remove partitions, and deleting a topic deletes its data.",
)


def sections(plan: Plan, moved: Movement | None = None, folder: str | None = None) -> tuple[ViewSection, ...]:
    """Every section with content, except topics and partitions, in reading order.

    With `moved`, the numbers of the plots, also the movement sections. Without `folder`, the page itself is in the
    plan's folder; else it names `folder`.
    """
    return (summary.section(plan), *details(plan, moved, folder))


def details(plan: Plan, moved: Movement | None = None, folder: str | None = None) -> tuple[ViewSection, ...]:
    """The sections after the summary. Markdown folds those that a decision doesn't need."""
    stay_note = Lines((Joined((_NEW_PARTITIONS[0], Name("rollback.json"), _NEW_PARTITIONS[1])),), bulleted=False)
    new_blocks = (
        cluster_tables.new_partitions(plan),
        stay_note,
        choice_tables.new_placements(plan),
        cluster_tables.new_lists(plan),
    )
    log_dirs = (cluster_tables.log_dirs(plan), cluster_tables.log_dir_moves(plan))
    scenarios = Lines(tuple(map(sentences.scenario, plan.scenarios)), "scenario")
    hours = (cluster_tables.worst_hours(plan), cluster_tables.months_of_hours(plan))
    # With `rebalance: none`, missed targets don't matter for the decision: they are shown among the folded terms.
    limits, terms = list[Block]([choice_tables.limits(plan)]), list[Block]([choice_tables.terms(plan)])
    (terms if plan.changes.rebalance == "none" else limits).append(choice_tables.relaxed(plan))
    all_sections = (
        ViewSection("Warnings", visible(Lines(plan.warnings, "warning")), "warnings"),
        ViewSection("Limits and balance", visible(*limits), "gates"),
        ViewSection("Risks", visible(Lines(tuple(verdict.risks(plan)), "risk")), "risks"),
        ViewSection("How to apply and roll back", visible(commands(plan, folder)), "commands"),
        ViewSection("Racks", visible(cluster_tables.racks(plan)), "racks", plot="racks", folded=True),
        ViewSection("Brokers", visible(cluster_tables.brokers(plan)), "brokers", plot="brokers", folded=True),
        *_movement(plan, moved),
        ViewSection(
            "Alternatives that copy less or more",
            visible(choice_tables.front(plan)),
            "front",
            plot="front",
            folded=True,
        ),
        ViewSection("Variants", visible(choice_tables.variants(plan)), "variants-and-plans"),
        ViewSection("Busiest hours", visible(Lines(sentences.hours(plan))), "busiest-hours"),
        ViewSection("Worst hours", visible(*hours), "hours", plot="hours", folded=True),
        ViewSection("Traffic between racks", visible(Lines(verdict.cross_rack(plan))), "rack-traffic"),
        ViewSection("In the scenarios", visible(scenarios), "scenarios"),
        ViewSection("New partitions", visible(*new_blocks) if plan.new_topics else (), "new", folded=True),
        ViewSection("Log dirs", visible(*log_dirs), "of-log-dirs", folded=True),
        ViewSection(_COMPARED, visible(choice_tables.compared(plan)), "others", folded=True),
        ViewSection("Every term", visible(*terms), "every-term", folded=True),
        ViewSection("How the plan was found", (_search_facts(plan),), "found", folded=True),
    )
    return tuple(section for section in all_sections if section.blocks)


def _movement(plan: Plan, moved: Movement | None) -> tuple[ViewSection, ...]:
    """The batches; if data is copied, also what each pair of brokers copies, and disk use over time."""
    batches = visible(cluster_tables.batches(plan))
    if moved is None or not moved.copied.any():
        return (ViewSection("Batches", batches, "batches", folded=True),)
    return (
        ViewSection("Movement", visible(cluster_tables.copied_pairs(plan, moved)), "movement", plot="movement"),
        ViewSection("Batches", (*batches, cluster_tables.copies(plan, moved)), "batches", plot="batches"),
        ViewSection("Disk use while the plan runs", visible(cluster_tables.stored(plan, moved)), "held", plot="held"),
    )


def _search_facts(plan: Plan) -> Facts:
    """How the plan was found and chosen, as pairs of a label and a sentence."""
    derived = sentences.derived(plan)
    proof_label = "Proof, of this step alone" if headline.first_step(plan) else "Proof of the minimum"
    facts: tuple[tuple[str, Value], ...] = (
        *requested.rules(plan, _LONGEST_FACT),
        ("By default", Sentence(derived, _LONGEST_FACT) if derived else ""),
        ("Chosen", headline.choice_phrase(plan)),
        (proof_label, Sentence(plan.bound.proof.rstrip("."), LONGEST_PROOF)),
        ("Searched", sentences.searched(plan)),
        ("The winner", formats.printable(plan.candidates.rule.rstrip("."), _LONGEST_FACT)),
    )
    return Facts(tuple((label, value) for label, value in facts if value))


# Ansible needs the addresses, but the YAML may leave them out.
_NO_ADDRESSES = (
    "none in the YAML: set cluster.bootstrap_servers and plan again, or add "
    "-e kafka_reassign_bootstrap_servers=HOST:PORT to each ansible-playbook command"
)


def next_steps_on_screen(plan: Plan, folder: str | None, files: int) -> ViewSection:
    """The place of the files, and the commands to type next."""
    if plan.refused:
        return ViewSection("", (Facts((("Next", if_refused(plan)),)),))
    if folder is None:
        return ViewSection("", ())
    folder_path = PurePath(folder)
    play = f"cd {shlex.quote(str(folder_path / 'ansible'))} && ansible-playbook"
    count_text = f" ({counted(files, 'file')})" if files else ""
    facts: list[tuple[str, Value]] = [("Files", f"{folder_path}/{count_text}: {what_to_open(plan)}")]
    if plan.has_something_to_do:
        if not plan.cluster.bootstrap_servers:
            facts.append(("Addresses", _NO_ADDRESSES))
        kept_text = "; new topics and partitions stay" if plan.new_topics else ""
        if first := headline.repair_first(plan):
            facts.append(("First", first))
        facts += [
            ("Next", f"{play} apply.yml --check"),
            ("Then", "ansible-playbook apply.yml, then verify.yml"),
            ("Rollback", f"ansible-playbook rollback.yml copies {copied_back(plan)}{kept_text}"),
        ]
    else:
        facts.append(("Next", "nothing to apply"))
    if plan.unfinished:
        facts.append(("After that", f"{before_next_step(plan)}, then planner whatif for the next step"))
    return ViewSection("", (Facts(tuple(facts)),))


def commands(plan: Plan, folder: str | None) -> Lines:
    """The place of the files, and the commands to type."""
    if plan.refused:
        next_step = if_refused(plan)
        return Lines((f"{next_step[0].upper()}{next_step[1:]}.",))
    files_line: tuple[Value, ...] = (f"Files, in the folder of this report: {what_to_open(plan)}.",)
    in_folder, ansible = ", in the plan's folder", "ansible"
    if folder is not None:
        files_line = ("Files: ", Name(f"{PurePath(folder)}/"), f": {what_to_open(plan)}.")
        in_folder, ansible = "", shlex.quote(str(PurePath(folder) / "ansible"))
    if not plan.has_something_to_do:
        return Lines((Joined(files_line),))
    lines = [files_line]
    if not plan.cluster.bootstrap_servers:
        lines.append((f"Addresses: {_NO_ADDRESSES}.",))
    if first := headline.repair_first(plan):
        lines.append((f"First: {first}.",))
    lines += [
        (f"Dry run{in_folder}: ", Name(f"cd {ansible} && ansible-playbook apply.yml --check"), "."),
        ("Apply: ", Name("ansible-playbook apply.yml"), ", then ", Name("ansible-playbook verify.yml"), "."),
    ]
    throttle = plan.execution.throttle_bytes_per_sec
    if throttle is not None and plan.replicas_copied:
        rate = f"{as_stated(throttle)}/s per broker"
        lines.append(
            (
                f"The throttle of {rate} is set before each batch, and removed at the end of the run. ",
                "If a run stops while replicas still move, the throttle stays until the next run, or until ",
                Name("ansible-playbook apply.yml --tags unthrottle"),
                ".",
            )
        )
    if plan.unfinished:
        lines.append((f"Then {before_next_step(plan)}, and plan the next step: ", Name("planner whatif"), "."))
    rollback_text = " restores every partition's old replica list and leader"
    rollback_text += ", and moves replicas back to their log dirs" if plan.log_dirs and plan.log_dirs.moves else ""
    rollback_text += f"; it copies {copied_back(plan)}"
    rollback_text += "; new topics and partitions stay" if plan.new_topics else ""
    lines.append(("Roll back: ", Name("ansible-playbook rollback.yml"), f"{rollback_text}."))
    return Lines(tuple(map(Joined, lines)), "command")


def what_to_open(plan: Plan) -> str:
    """What to do with which file of a plan's folder."""
    return "review report.md or report.html" + (", apply with ansible/" if plan.has_something_to_do else "")


def before_next_step(plan: Plan) -> str:
    """What has to be done after a first step, before the next one is planned."""
    joining = [broker.id for broker in plan.brokers if broker.role == "added" and broker.after.replicas]
    move_text = f", move {brokers(joining)} to cluster.brokers" if joining else ""
    return f"capture the state again{move_text}"


def if_refused(plan: Plan) -> str:
    """What to do about exceeded limits; a budget is suggested only if it limits the same amounts."""
    exceeded = [gate for gate in plan.limits if gate.crossed]
    crossed = {gate.key for gate in exceeded}
    unsafe_text = "do what is allowed (see Unsafe)" if plan.unsafe else ""
    if not crossed:
        return f"nothing was written: {unsafe_text}, then run the same command again"
    amounts = {f"limits.{name}" for name in ("bytes_moved", "replicas_moved", "leaders_changed")}
    step = ", or set a budget to plan a first step" if crossed <= amounts else ""
    faster = ", or raise execution.throttle" if "limits.eta" in crossed else ""
    # A disk limit can't be above 100 %, so raising it doesn't help a disk that would be overfull.
    too_small = [
        gate for gate in exceeded if gate.key == "limits.disk_used" and gate.value > choice_tables.disk_of(plan, gate)
    ]
    adjustable = sorted((gate for gate in exceeded if gate not in too_small), key=lambda gate: gate.key in AT_LEAST)
    verbs = ["lower " if gate.key in AT_LEAST else "" if index else "raise " for index, gate in enumerate(adjustable)]
    new_limits = [f"{gate.key} to {_enough_limit(plan, gate)}" for gate in adjustable]
    raised = " and ".join(map("".join, zip(verbs, new_limits, strict=True)))
    raises = f"{raised}{faster}, or " if raised else ""
    small_text = "".join(f"broker {gate.broker}'s disk is too small; " for gate in too_small)
    unsafe_too = f"; {unsafe_text}" if unsafe_text else ""
    return f"nothing was written: {small_text}{raises}ask for less{step}{unsafe_too}; then run the same command again"


def _enough_limit(plan: Plan, gate: LimitRow) -> str:
    """The limit that this plan would keep, rounded up; says if today's cluster exceeds the limit already."""
    if gate.key == "limits.disk_used":
        return f"{-(-1000 * gate.value // choice_tables.disk_of(plan, gate)) / 10:g} %"
    unit = 60 if gate.key == "limits.eta" else 1
    if gate.key in (*GATES_ON_BYTES, *GATES_ON_RATES):
        unit = 10 ** max(0, len(str(gate.value)) - 3)
    today = next((term.today for term in plan.terms if f"limits.{term.name}" == gate.key), None)
    # If today's value exceeds the limit, a smaller change doesn't help.
    exceeded = gate.key.endswith(("_offline", "_refused")) and today is not None and today > gate.limit
    already = f" ({amount(today, '')} today already)" if exceeded else ""
    return gate_amount(gate.key, -(-gate.value // unit) * unit) + already


def copied_back(plan: Plan) -> str:
    """The most that a rollback of the whole plan copies: `2.12 TB (112 replicas) at most`, or `nothing`."""
    dropped = [(len(row.dropped), row.size_bytes) for row in plan.partitions]
    parts = list[str]()
    if replicas := sum(count for count, _ in dropped):
        parts.append(
            f"{_copied_text(plan, sum(count * size_bytes for count, size_bytes in dropped), replicas)} between brokers"
        )
    if plan.log_dirs and plan.log_dirs.moves:
        parts.append(f"{_copied_text(plan, plan.log_dirs.bytes_moved, plan.log_dirs.replicas_moved)} between log dirs")
    if len(parts) == 1:
        parts = [parts[0].removesuffix(" between brokers")]
    down_ids = [broker.id for broker in plan.brokers if broker.role == "removed" and broker.seems_down]
    once_live = f", once {brokers(down_ids)} {'is' if len(down_ids) == 1 else 'are'} live again" if down_ids else ""
    return f"{' and '.join(parts)} at most{once_live}" if parts else "nothing"


def _copied_text(plan: Plan, size_bytes: int, replicas: int) -> str:
    replica_text = counted(replicas, "replica")
    return f"{size(size_bytes)} ({replica_text})" if plan.cluster.sizes_known else replica_text


def terraform_news(plan: Plan) -> str:
    """The changes to topics in the tfvars that are new to Terraform, and the topics left out; empty if no changes."""
    grown, declared = {topic.topic for topic in plan.new_topics}, plan.declared_topics
    resized_names = {topic.name for topic in plan.topics if _has_new_factor(topic)}
    if declared.keys().isdisjoint(resized_names | grown):
        return ""
    left_out = len(plan.topics) - len(declared)
    new_count = sum(not topic.partitions_before for topic in plan.new_topics)
    resized_count = len(declared.keys() & resized_names - grown)
    kinds = (
        (resized_count, "with another replication factor"),
        (len(grown) - new_count, "with more partitions"),
        (new_count, "new"),
    )
    changes_text = ", ".join(f"{counted(count, 'topic')} {description}" for count, description in kinds if count)
    left_out_text = f"; {counted(left_out, 'topic')} left out (internal to Kafka, or with mixed replication factors)"
    unknown_count = sum(topic["config"] is None for topic in declared.values())
    unknown_text = (
        f"; the config of {counted(unknown_count, 'topic')} is null, because the state doesn't say what is inherited: "
        "write the config into the tfvars, or add the output of kafka-configs --describe --entity-type topics --all "
        "to the state"
    )
    return f"{changes_text}{left_out_text if left_out else ''}{unknown_text if unknown_count else ''}"


def old_tfvars(plan: Plan) -> str:
    """What terraform apply with the old tfvars would do after the plan: `undo the new replication factors`, or nothing.

    A provider can lower the number of partitions only by a new topic (kafka_topic of Mongey/kafka: ForceNew).
    """
    grown = {topic.topic for topic in plan.new_topics if topic.partitions_before}
    factors = any(topic.replication_factor_before and _has_new_factor(topic) for topic in plan.topics)
    deletes = "delete each topic that has more partitions now, with its data, and create it anew"
    return " and ".join([*(["undo the new replication factors"] if factors else []), *([deletes] if grown else [])])


def _has_new_factor(topic: TopicRow) -> bool:
    return topic.replication_factor_before != (topic.replication_factor,)
