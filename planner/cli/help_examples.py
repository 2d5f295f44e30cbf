"""Examples at the end of each command's `--help`, in one place, so that they stay of one kind."""

from __future__ import annotations

# By command: lines to type, the commonest first.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "whatif": (
        "planner whatif expand.yaml",
        "planner whatif expand.yaml --engine local --candidates 300",
        "planner whatif clusters/a.yaml clusters/b.yaml --out plans --master spark://host:7077",
        "planner whatif expand.yaml --detailed-exitcode --format markdown",
    ),
    "validate": ("planner validate expand.yaml", "planner validate clusters/a.yaml clusters/b.yaml"),
    "show": (
        "planner show expand.plan",
        "planner show expand.plan/plan.json --format json",
        "planner show --journal run.jsonl",
    ),
    "render": ("planner render expand.plan --out again",),
    "check": (
        "planner check expand.plan",
        "planner check expand.plan --state topics-describe.txt",
        "planner check expand.plan --bound",
    ),
    "resume": ("planner resume expand.plan --state topics-describe.txt --state log-dirs.txt --out rest.plan",),
    "diff": ("planner diff main/expand.plan expand.plan", "planner diff a.plan b.plan --format markdown"),
    "external": ("planner external",),
    "import": (
        "planner import topics-describe.txt log-dirs.txt -o cluster.yaml",
        "planner import znodes/",
        "planner import --bootstrap-servers kafka-1:9092 --command-config client.properties -o cluster.yaml",
    ),
    "failures": (
        "planner failures expand.yaml",
        "planner failures expand.plan --of racks --of pairs --format json",
        "planner failures expand.yaml --of 3 --rows failures.parquet",
    ),
    "growth": ("planner growth orders.yaml", "planner growth orders.yaml --months 24 --format markdown"),
    "consumers": (
        "planner consumers orders.yaml --group billing --engine local",
        "planner consumers orders.yaml --add-partitions orders=48 --key customer-42",
        "planner consumers orders.yaml --sweep --consumers 2-12",
    ),
    "place": (
        "planner place --brokers 0,1,2 --partitions 6 --replication-factor 3 --start-index 2 --next-replica-shift 0",
        "planner place --algorithm round-robin --brokers 0,1,2 --partitions 6 --replication-factor 2",
        "planner place orders.yaml --partitions 12 --replication-factor 3 --format replica-assignment",
    ),
    "seeds": ("planner seeds orders.yaml", "planner seeds topics-describe.txt --topic orders"),
}
