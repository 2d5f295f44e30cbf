"""`planner consumers`: owners, moves, keys, racks, the sweep, and what is refused."""

from __future__ import annotations

import json

import pytest
from folders import DATA, ROOT

from planner.whatif import group_events_and_keys

EXAMPLE = ROOT / "examples" / "consumers" / "consumers.yaml"
GOLDEN = DATA / "consumers"
CLUSTER = """
version: 1
cluster:
  name: small
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: a}]
  topics:
    - name: orders
      partitions:
        - {replicas: [1, 2], bytes_in: 4MB/s}
        - {replicas: [2, 3], bytes_in: 2MB/s}
        - {replicas: [3, 2], bytes_in: 1MB/s}
        - {replicas: [1, 2], bytes_in: 1MB/s}
    - {name: audit, partitions: [{replicas: [1]}, {replicas: [2]}]}
"""


@pytest.fixture
def answer(planner, tmp_path):
    """Runs the command on the small cluster with these groups and changes, and returns its JSON."""

    def run(groups, *arguments, changes=""):
        (tmp_path / "spec.yaml").write_text(f"{CLUSTER}{changes}\nconsumers:\n{groups}\n")
        code, out, err = planner("consumers", tmp_path / "spec.yaml", "--format", "json", *arguments)
        assert (0, "") == (code, err)
        return json.loads(out)

    return run


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_the_example_is_golden(planner, form, request):
    """The output for examples/consumers is the golden file in every format, byte for byte."""
    options = ("--engine", "local", "--sweep", "--consumers", "2-8", "--key", "order-4711")
    code, out, err = planner("consumers", EXAMPLE, "--format", form, *options)
    golden = GOLDEN / f"example.{form}"
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(out)

    assert (0, "") == (code, err)
    assert golden.read_text() == out


def test_the_example_can_be_planned(planner):
    """The example with its groups is a valid spec."""
    assert 0 == planner("validate", EXAMPLE)[0]


def test_members_and_their_loads(answer):
    """With the assignor range and two members, each owns 2 partitions, with 6 and 2 MB/s."""
    (group,) = answer("  - {group: g, assignor: range, topics: [orders], members: 2}")["groups"]

    assert [("consumer-1", 2, 6_000_000), ("consumer-2", 2, 2_000_000)] == [
        (member["id"], member["partitions"], member["load"]) for member in group["members"]
    ]
    assert {
        "most_partitions": 2,
        "fewest_partitions": 2,
        "most_load": 6_000_000,
        "fewest_load": 2_000_000,
        "total_load": 8_000_000,
        "above_share_percent": 50.0,
    } == group["spread"]


def test_what_moves_and_what_pauses(answer):
    """If one of two members leaves, its partitions move; all partitions pause, except with cooperative-sticky."""
    eager, cooperative = answer(
        "  - {group: a, assignor: sticky, topics: [orders], members: 2}\n"
        "  - {group: b, assignor: cooperative-sticky, topics: [orders], members: 2}"
    )["groups"]

    assert [("consumer-1 leaves", 2, 0, 4), ("consumer-2 leaves", 2, 0, 4), ("a member joins", 1, 1, 4)] == [
        (event["what"], event["moved"], event["from_staying"], event["paused"]) for event in eager["events"]
    ]
    assert [2, 2, 1] == [event["paused"] for event in cooperative["events"]]


def test_a_large_group_is_looked_at_in_parts(answer):
    """Of a hundred members, leaving is simulated for 32, with the first and the last among them."""
    (group,) = answer("  - {group: g, topics: [orders], members: 100}")["groups"]
    leaving = [event["what"] for event in group["events"] if event["what"].endswith(" leaves")]

    assert 32 == len(leaving)
    assert ["consumer-001 leaves", "consumer-100 leaves"] == [leaving[0], leaving[-1]]


def test_unlike_subscriptions(answer):
    """Different subscriptions are reported, with what would change if all members read all topics."""
    (group,) = answer("  - {group: g, members: [{id: a, topics: [orders, audit]}, {id: b, topics: [audit]}]}")["groups"]

    assert "1 member of 2 without some of the group's topics" == group["differing"]
    assert "all members read all topics" == group["events"][-1]["what"]
    assert (5, 1) == tuple(group["spread"][key] for key in ("most_partitions", "fewest_partitions"))
    assert (3, 3) == tuple(group["events"][-1]["spread"][key] for key in ("most_partitions", "fewest_partitions"))


def test_more_partitions(answer):
    """Added partitions, from the spec or an option, are shown with their owners and the share of keys that move."""
    grown = "changes: {add_partitions: [{topic: audit, partitions: 3}]}"
    groups = "  - {group: g, topics: ['*'], members: 2}"
    found = answer(groups, "--add-partitions", "orders=8", "--key", "k", changes=grown)

    assert [("audit", 2, 3, 66.667), ("orders", 4, 8, 50.0)] == [
        (each["topic"], each["before"], each["after"], each["keys_moved_percent"]) for each in found["partition_counts"]
    ]
    (event,) = [each for each in found["groups"][0]["events"] if "→" in each["what"]]
    assert ("audit 2 → 3 partitions, orders 4 → 8 partitions", 5) == (event["what"], event["new"])
    assert ["audit", "orders"] == found["groups"][0]["rebalances"]["topics_with_more_partitions"]
    key = next(each["keys"][0] for each in found["partition_counts"] if each["topic"] == "orders")
    assert {
        "key": "k",
        "before": group_events_and_keys.partition_of(b"k", 4),
        "after": group_events_and_keys.partition_of(b"k", 8),
    } == key


def test_a_key_is_any_bytes(answer):
    """A key may be any bytes; the bytes from the shell are hashed."""
    found = answer("  - {group: g, topics: ['*'], members: 2}", "--add-partitions", "orders=8", "--key", "\udcff")
    (count,) = found["partition_counts"]
    assert [group_events_and_keys.partition_of(b"\xff", 8)] == [key["after"] for key in count["keys"]]


def test_a_key_needs_a_topic_that_grows(planner, tmp_path):
    """Without a topic that gets more partitions there is nothing to show of a key, and that is said."""
    (tmp_path / "spec.yaml").write_text(f"{CLUSTER}\nconsumers: [{{group: g, topics: [orders], members: 2}}]\n")
    code, out, err = planner("consumers", tmp_path / "spec.yaml", "--key", "k")
    assert (1, "") == (code, out)
    assert "no topic gets more partitions, so each --key stays where it is; allowed: --key with" in err


def test_changed_racks_make_groups_with_racks_rebalance(answer):
    """If broker 3 changes its rack, a group with client.rack rebalances, and one without doesn't (KIP-881)."""
    groups = (
        "  - {group: near, members: [{id: a, topics: [orders], rack: a}, {id: b, topics: [orders], rack: b}]}\n"
        "  - {group: other, topics: [orders], members: 2}"
    )
    near, other = answer(groups, changes="changes: {set_racks: {3: b}}")["groups"]

    assert [1, 2] == [each["partition"] for each in near["rebalances"]["partitions_in_other_racks"]]
    assert (True, False) == (near["rebalances"]["rebalances"], other["rebalances"]["rebalances"])
    assert [2, 2] == [member["read_in_rack"] for member in near["members"]]
    still, _ = answer(groups)["groups"]
    assert not still["rebalances"]["rebalances"]


@pytest.mark.slow
def test_a_plan_tells_which_partitions_change_racks(planner, answer, tmp_path):
    """With `--plan`, replicas that move to another rack make a group with client.rack rebalance too."""
    groups = "  - {group: near, members: [{id: a, topics: [audit], rack: a}]}"
    changes = "changes: {remove_brokers: [2]}\nrack_aware: disabled"
    answer(groups, changes=changes)
    out = tmp_path / "plan"
    options = ("--engine", "local", "--candidates", 20, "--out", out)
    assert 0 == planner("whatif", tmp_path / "spec.yaml", *options)[0]
    code, text, _ = planner("consumers", tmp_path / "spec.yaml", "--plan", out)

    assert "--plan PLAN says whether any do." in planner("consumers", tmp_path / "spec.yaml")[1]
    assert "--plan PLAN" not in text
    assert 0 == code
    assert "make it rebalance: replicas of 1 partition move to other racks, and it has client.rack: audit-1." in text


def test_a_plan_of_another_spec_is_refused(planner, answer, tmp_path):
    """A plan made from another spec is refused."""
    answer("  - {group: g, members: 2, topics: [orders]}")
    out = tmp_path / "plan"
    assert 0 == planner("whatif", tmp_path / "spec.yaml", "--engine", "local", "--candidates", 20, "--out", out)[0]
    (tmp_path / "spec.yaml").write_text((tmp_path / "spec.yaml").read_text() + "# another one\n")
    code, text, err = planner("consumers", tmp_path / "spec.yaml", "--plan", out)
    assert (1, "") == (code, text)
    assert "and its state as they are now; make the plan again" in err


def test_owners_as_the_cluster_tells_them(answer, tmp_path):
    """The state file's owners and assignor are shown; a stated assignor counts before the file's."""
    (tmp_path / "group.txt").write_text(
        "GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS\ng k:9092 (1) roundrobin Stable 2\n\n"
        "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT\ng a /h a 3 orders(0,1,2)\ng b /h b 1 orders(3)\n"
    )
    (group,) = answer("  - {group: g, state: group.txt, members: [{id: a, rack: a}], topics: [orders]}")["groups"]

    assert ("roundrobin", True, False) == (group["assignor"], group["observed"], group["as_assigned"])
    assert [3, 1] == [member["partitions"] for member in group["members"]]
    assert ["a", None] == [member["rack"] for member in group["members"]]
    (group,) = answer("  - {group: g, state: group.txt, assignor: sticky}")["groups"]
    assert "sticky" == group["assignor"]
    (group,) = answer("  - {group: g, state: group.txt, members: [{id: a, rack: a}]}")["groups"]
    assert [["orders"], ["orders"]] == [member["topics"] for member in group["members"]]


def test_more_members_than_partitions(planner, answer, tmp_path):
    """If there are more members than partitions, the output counts the members without partitions."""
    answer("  - {group: g, topics: [audit], members: 3}")

    assert "1 member without any partition" in planner("consumers", tmp_path / "spec.yaml")[1]


def test_the_sweep_finds_the_least_spread(answer):
    """Range gives 6 and 2 MB/s to two members, round robin 5 and 3; the sweep also weighs the growth scenario."""
    growth = "sweep: {scenarios: {growth: [{name: more, topics: orders, factor: 3.0}]}}"
    options = ("--sweep", "--engine", "local", "--consumers", "2-2")
    found = answer("  - {group: g, topics: [orders], members: 2}", *options, changes=growth)["sweep"]
    (group,) = found["groups"]

    assert ["today", "more"] == found["scenarios"]
    assert 4 == group["tried"]
    assert ("cooperative-sticky", 2, 6_000_000, 1) == tuple(
        group["best"][key] for key in ("assignor", "members", "widest_spread", "widest_in")
    )


def test_the_sweep_never_tries_more_members_than_partitions(answer):
    """The sweep tries at most as many members as there are partitions, because more would be idle."""
    found = answer("  - {group: g, topics: [orders], members: 9}", "--sweep", "--engine", "local")["sweep"]

    assert [2, 3, 4] == [each["members"] for each in found["groups"][0]["by_members"]]


@pytest.mark.spark
def test_the_sweep_on_spark_is_the_same(planner):
    """The sweep on Spark prints the same bytes as the local one, also with a user's assignor."""
    options = ("consumers", EXAMPLE, "--sweep", "--consumers", "2-8", "--format", "json")
    local = planner(*options, "--engine", "local")

    assert local == planner(*options, "--master", "local[2]")


@pytest.mark.parametrize(
    ("groups", "arguments", "said"),
    [
        ("  - {group: g}", (), "consumers[0]: has neither members nor state; allowed: at least one of them"),
        ("  - {group: g, members: 2}", (), "consumers[0]: has a number of members and no topics"),
        ("  - {group: g, members: [{id: a}]}", (), "consumers[0].members[0]: has no topics, nor has its group"),
        ("  - {group: g, members: 2, topics: [nope]}", (), "consumers[0].topics[0]: 'nope' matches no topic"),
        (
            "  - {group: g, topics: [orders], members: [{id: a}, {id: a}]}",
            (),
            "consumers[0].members[1].id: 'a' is here twice; allowed: each member once",
        ),
        (
            "  - {group: g, topics: [orders], members: 1}\n  - {group: g, topics: [orders], members: 1}",
            (),
            "consumers[1].group: 'g' is here twice; allowed: each group once",
        ),
        ("  - {group: g, members: 0, topics: [orders]}", (), "consumers[0].members: 0 isn't possible here"),
        (
            "  - {group: g, members: 1, topics: [orders], assignor: fair}",
            (),
            "'fair' isn't possible here; allowed: range",
        ),
        ("  - {group: g, state: none.txt}", (), "none.txt' can't be read: No such file or directory"),
        (
            "  - {group: g, members: 1, topics: [orders]}",
            ("--group", "h"),
            "--group 'h' isn't in consumers; allowed: g",
        ),
        (
            "  - {group: g, members: 1, topics: [orders]}",
            ("--add-partitions", "orders=4"),
            "--add-partitions orders=4 isn't possible; allowed: more than its 4 partitions",
        ),
        (
            "  - {group: g, members: 1, topics: [orders]}",
            ("--add-partitions", "orders"),
            "'orders' isn't a topic and its partitions",
        ),
        ("  - {group: g, members: 1, topics: [orders]}", ("--consumers", "5-2"), "'5-2' isn't a range of consumers"),
        ("  - {group: g, members: 1, topics: [orders]}", ("--consumers", "2-5"), "--consumers says what --sweep tries"),
    ],
)
def test_what_is_wrong_is_said(planner, tmp_path, groups, arguments, said):
    """A fault exits with 1, and stderr has its place and what is allowed."""
    (tmp_path / "spec.yaml").write_text(f"{CLUSTER}\nconsumers:\n{groups}\n")
    code, out, err = planner("consumers", tmp_path / "spec.yaml", *arguments)

    assert (1, "") == (code, out)
    assert said in " ".join(err.split())


def test_a_file_of_another_group_or_cluster(planner, tmp_path):
    """A state file of another group, or with a partition that the cluster lacks, is refused."""
    (tmp_path / "group.txt").write_text("GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT\nh a /h a 1 x(7)\n")
    for group, said in (
        ("g", "consumers[0].group: 'g' isn't in 'group.txt'; allowed: h"),
        ("h", "consumers[0].state: 'a' of 'group.txt' owns x-7, which the cluster doesn't have"),
    ):
        (tmp_path / "spec.yaml").write_text(f"{CLUSTER}\nconsumers:\n  - {{group: {group}, state: group.txt}}\n")
        code, _, err = planner("consumers", tmp_path / "spec.yaml")

        assert 1 == code
        assert said in err


def test_validate_reads_the_groups_files_too(planner, tmp_path):
    """`validate` finds every fault of every group's state file, together with those of the spec."""
    (tmp_path / "bad.txt").write_text("GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT\nh a /h a 1 x(-7)\n")
    (tmp_path / "utf16.txt").write_bytes("GROUP".encode("utf-16"))
    groups = [("g", "none.txt"), ("h", "bad.txt"), ("i", "."), ("j", "utf16.txt"), ("k", "none.txt")]
    declared = "".join(f"  - {{group: {group}, state: {state}}}\n" for group, state in groups)
    (tmp_path / "spec.yaml").write_text(f"{CLUSTER}\nconsumers:\n{declared}limits: {{replicas_moved: -1}}\n")
    code, _, err = planner("validate", tmp_path / "spec.yaml")

    assert 1 == code
    assert 5 == len(err.splitlines())
    for said in (
        "consumers[0].state: ",
        "none.txt' can't be read: No such file or directory; allowed: a readable file",
        "bad.txt:2:1: assignment 'x(-7)' isn't topics with their partitions",
        "consumers[2].state: ",
        "utf16.txt:1:1: the file is in UTF-16",
        "limits.replicas_moved: -1 isn't possible here",
    ):
        assert said in err


def test_names_are_no_markup(planner, tmp_path):
    """A group's name with Markdown, HTML or Jinja is shown as text."""
    name = "'<b>{{ 1 }}|`x`[[ 2 ]]'"
    (tmp_path / "spec.yaml").write_text(f"{CLUSTER}\nconsumers:\n  - {{group: {name}, members: 1, topics: [orders]}}\n")
    code, out, _ = planner("consumers", tmp_path / "spec.yaml", "--format", "markdown")

    assert 0 == code
    assert "## ``<b>{{ 1 }}\\|`x`[[ 2 ]]``: range" in out


def test_a_spec_without_groups(planner):
    """A spec without consumer groups is refused, and the missing key is named."""
    code, _, err = planner("consumers", ROOT / "examples" / "expand.yaml")

    assert 1 == code
    assert "allowed: the key consumers with at least one group" in err
