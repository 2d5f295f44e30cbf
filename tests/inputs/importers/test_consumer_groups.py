"""Reads what kafka-consumer-groups --describe prints in Kafka 2 to 4, and refuses what it can't read."""

from __future__ import annotations

import pytest

from planner.inputs.importers import consumer_groups
from planner.model.errors import ImportStateError
from planner.model.spec import DescribedGroup

OFFSETS = """
GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID                                HOST            CLIENT-ID
billing         orders          0          120             120             0               b-1-8f1d2c3e                               /10.0.0.7       b-1
billing         orders          1          -               77              -               b-2-77aa01bc                               /10.0.0.8       b-2
billing         payments        0          3               9               6               b-1-8f1d2c3e                               /10.0.0.7       b-1
billing         payments        1          3               9               6               -                                          -               -
"""  # noqa: E501
MEMBERS_3 = """
GROUP           CONSUMER-ID                                HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT
billing         b-1-8f1d2c3e                               /10.0.0.7       b-1             2               orders(0), payments(0)
billing         b-2-77aa01bc                               /10.0.0.8       b-2             1               orders(1)
billing         b-3-00000000                               /10.0.0.9       b-3             0               -
"""  # noqa: E501
MEMBERS_4 = """
GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT    TARGET-EPOCH    TARGET-ASSIGNMENT     UPGRADED
billing         b-1-8f1d2c3e    one               /10.0.0.7       b-1             2               7               orders:0;payments:0   7               orders:0;payments:0   true
billing         b-2-77aa01bc    two               /10.0.0.8       b-2             1               7               orders:1              7               orders:1              true
"""  # noqa: E501
STATE = """
GROUP                     COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           #MEMBERS
billing                   kafka-1:9092  (1)         cooperative-sticky   Stable          2
empty                     kafka-2:9092  (2)         -                    Empty           0
"""
OWNED = {"b-1-8f1d2c3e": (("orders", 0), ("payments", 0)), "b-2-77aa01bc": (("orders", 1),)}


def test_offsets():
    """The consumer in each line owns its partition; topics without a consumer belong to the group too."""
    assert (DescribedGroup("billing", "", OWNED, ("orders", "payments")),) == consumer_groups.parse(OFFSETS, "g")


@pytest.mark.parametrize("text", [MEMBERS_3, MEMBERS_4], ids=["3.x", "4.x"])
def test_members(text):
    """With --members --verbose the assignment is read in both formats; members without partitions are read too."""
    (group,) = consumer_groups.parse(text, "g")

    assert OWNED == {member: held for member, held in group.members.items() if held}
    assert ("orders", "payments") == group.topics
    assert ("b-3-00000000" in text) == ("b-3-00000000" in group.members)


def test_members_without_their_partitions():
    """Without --verbose the members are known, but not their partitions."""
    text = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS\nbilling b-1 /10.0.0.7 b 2\n"

    assert (DescribedGroup("billing", "", {"b-1": ()}, ()),) == consumer_groups.parse(text, "g")


@pytest.mark.parametrize(
    ("text", "cut", "said"),
    [
        (MEMBERS_3, ("orders(0), payments(0)", "orders(0)"), "3:1: member 'b-1-8f1d2c3e' has 2 in #PARTITIONS, and an"),
        (MEMBERS_3, ("orders(1)", "-"), "4:1: member 'b-2-77aa01bc' has 1 in #PARTITIONS, and an assignment of 0"),
        (MEMBERS_4, ("7               orders:1 ", "7  orders:1,2 "), "4:1: member 'b-2-77aa01bc' has 1 in #PARTITIONS"),
    ],
)
def test_an_assignment_has_as_many_partitions_as_its_line_says(text, cut, said):
    """A line that was cut off, or edited, is refused: its member has more or fewer partitions than are counted."""
    with pytest.raises(ImportStateError) as caught:
        consumer_groups.parse(text.replace(*cut, 1), "g")
    assert f"g:{said}" in str(caught.value)


def test_state_and_members_in_one_file():
    """Several outputs in one file, with Kafka's messages between them, are joined by group."""
    told = "Consumer group 'empty' has no active members.\n"
    empty, billing = sorted(consumer_groups.parse(STATE + told + MEMBERS_3, "g"), key=lambda group: -len(group.name))[
        ::-1
    ]

    assert ("empty", "", {}) == (empty.name, empty.assignor, empty.members)
    assert ("billing", "cooperative-sticky", 3) == (billing.name, billing.assignor, len(billing.members))


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("billing orders 0\n" + OFFSETS, "g:1:1", "stands under no heading"),
        (OFFSETS + "billing orders 2\n", "g:7:1", "has 3 of 9 columns"),
        (OFFSETS.replace("orders          1 ", "orders          x "), "g:4:1", "'x' isn't a partition's id"),
        (OFFSETS.replace("b-2-77aa01bc", "b 2-77aa01b"), "g:4:1", "'2-77aa01b'; names with spaces can't be read"),
        (MEMBERS_3.replace("orders(1)", "orders[1]"), "g:4:1", "isn't topics with their partitions"),
        (MEMBERS_3.replace("orders(1)", "orders(0)"), "g: billing", "orders-0 of group billing is owned by"),
        ("GROUP TOPIC\n", "g:1:1", "no column CONSUMER-ID; allowed"),
        ("GROUP TOPIC CONSUMER-ID\nbilling orders c-1\n", "g:1:1", "no column PARTITION; allowed"),
        ("GROUP TOPIC PARTITION CONSUMER-ID\n", "g:1:1", "no group is described"),
    ],
)
def test_what_can_not_be_read(text, place, said):
    """A text that can't be read is refused with its line, its value, and what is allowed."""
    with pytest.raises(ImportStateError) as error:
        consumer_groups.parse(text, "g")

    assert str(error.value).startswith(place)
    assert said in str(error.value)
    assert "allowed: " in str(error.value)


SHARE = (
    """
GROUP           TOPIC           PARTITION  START-OFFSET  LAG
jobs            orders          0          12            3
jobs            parcels         0          -             -

GROUP           CONSUMER-ID            HOST            CLIENT-ID       #PARTITIONS  ASSIGNMENT
jobs            KxQ0oZBzQ5CAtSWwjvSqhQ /10.0.0.7       j-1             3            orders:0,1;parcels:0
jobs            Yb3Zx1VYRzqvUjTd0bCXyA /10.0.0.8       j-2             1            orders:0
jobs            zz-no-partitions       /10.0.0.9       j-3             0            """
    + """

GROUP           COORDINATOR (ID)          STATE           #MEMBERS
jobs            kafka-1:9092  (1)         Stable          3
"""
)


@pytest.mark.parametrize("text", ["{}" + OFFSETS, OFFSETS + "\n{}"])
def test_an_error_of_the_tool_is_refused(text):
    """After an error, members or partitions may be missing; only a group that doesn't exist leaves the others whole."""
    told = "Error: Executing consumer group command failed due to timeout"
    with pytest.raises(ImportStateError) as error:
        consumer_groups.parse(text.format(f"{told}\njava.util.concurrent.TimeoutException: timeout\n\tat X\n"), "g")
    (finding,) = error.value.findings
    assert f"{told!r}: what the tool printed may be incomplete; allowed: its output without an error" == finding.message
    assert told == text.format(told).splitlines()[finding.place.line - 1]

    for chatter in ("Error: Consumer group 'a' does not exist.", "Warning: Consumer group 'a' is rebalancing."):
        assert consumer_groups.parse(OFFSETS, "g") == consumer_groups.parse(text.format(f"{chatter}\n"), "g")


def test_share_groups():
    """Outputs of kafka-share-groups with --members and --state are read; several members may own the same partition."""
    found = DescribedGroup(
        "jobs",
        "simple",
        {
            "KxQ0oZBzQ5CAtSWwjvSqhQ": (("orders", 0), ("orders", 1), ("parcels", 0)),
            "Yb3Zx1VYRzqvUjTd0bCXyA": (("orders", 0),),
            "zz-no-partitions": (),
        },
        ("orders", "parcels"),
    )
    assert (found,) == consumer_groups.parse(SHARE + "Share group 'none' has no active members.\n", "g")
    verbose = SHARE.replace("#PARTITIONS  ASSIGNMENT", "#PARTITIONS  MEMBER-EPOCH  ASSIGNMENT")
    for many in (3, 1, 0):
        verbose = verbose.replace(f"  {many}            ", f"  {many}            4             ")
    verbose = verbose.replace("PARTITION  START-OFFSET  LAG", "PARTITION  LEADER-EPOCH  START-OFFSET  LAG")
    verbose = verbose.replace("0          12 ", "0          7  12 ").replace("0          -  ", "0          -  -  ")
    assert (found,) == consumer_groups.parse(verbose, "g")
