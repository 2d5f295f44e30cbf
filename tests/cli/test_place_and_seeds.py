"""`planner place` and `planner seeds`: placements, the seeds that explain them, and what is refused."""

from __future__ import annotations

import json

import pytest
from folders import DATA, EXAMPLES

from planner.cli.place_and_seeds import read_brokers, seeds_document, seeds_view
from planner.model.cluster import Partition, Topic
from planner.model.document_fields import LARGEST_ID
from planner.report import markdown
from planner.strategies import kafka_classic, kafka_striped
from planner.whatif import explain_seeds
from planner.whatif.explain_seeds import Explanation

ZOOKEEPER = DATA / "zookeeper-3.9" / "kafka-topics-describe.txt"
PAIR = ("--start-index", 2, "--next-replica-shift", 0)
SIX = ("place", "--partitions", 6, "--replication-factor", 3)


def assignment(planner, *arguments) -> str:
    """The --replica-assignment string of a placement."""
    code, out, err = planner(*arguments, "--format", "replica-assignment")
    assert (0, "") == (code, err)
    return out.rstrip("\n")


def test_topic_test4_as_a_table(planner):
    """The topic of Kafka's introductions is placed, with the string that creates it."""
    assert (
        "Partition  Replicas\n"
        "        0  2,0,1\n"
        "        1  0,1,2\n"
        "        2  1,2,0\n"
        "        3  2,1,0\n"
        "        4  0,2,1\n"
        "        5  1,0,2\n"
        "\n--replica-assignment 2:0:1,0:1:2,1:2:0,2:1:0,0:2:1,1:0:2\n"
    ) == planner(*SIX, "--brokers", "0,1,2", *PAIR)[1]


@pytest.mark.parametrize(
    ("brokers", "partitions", "pair", "expected"),
    [
        ("0,1,2,3", 3, (3, 2), "3:2:0,0:3:1,1:0:2"),
        ("0,1,2,3", 5, (3, 1), "3:1:2,0:2:3,1:3:0,2:0:1,3:2:0"),
        ("0,1,2,3", 9, (1, 2), "1:0:2,2:1:3,3:2:0,0:3:1,1:2:3,2:3:0,3:0:1,0:1:2,1:3:0"),
        ("8,2,5", 1, (2, 0), "8:2:5"),
    ],
)
def test_published_assignments(planner, brokers, partitions, pair, expected):
    """Published results of assignReplicasToBrokers are reproduced; brokers are sorted by id first."""
    arguments = ("--partitions", partitions, "--replication-factor", 3, "--start-index", pair[0])

    assert expected == assignment(planner, "place", "--brokers", brokers, *arguments, "--next-replica-shift", pair[1])


def test_tp_demo_03_s_string(planner):
    """Topic tp_demo_03 gets the string of its published manual assignment."""
    arguments = ("--partitions", 3, "--replication-factor", 2, "--start-index", 0, "--next-replica-shift", 0)

    assert "0:1,1:0,0:1" == assignment(planner, "place", "--brokers", "0,1", *arguments)


def test_racks_alternate(planner):
    """With two racks of three brokers, each partition's racks alternate; the table names them."""
    racks = "0=a,1=a,2=a,3=b,4=b,5=b"
    arguments = ("--partitions", 2, "--replication-factor", 3, "--start-index", 3, "--next-replica-shift", 0)
    _, out, _ = planner("place", "--brokers", "0,1,2,3,4,5", "--racks", racks, *arguments)

    assert (
        "Partition  Replicas  Racks\n"
        "        0  4,2,5     b,a,b\n"
        "        1  2,5,0     a,b,a\n"
        "\n--replica-assignment 4:2:5,2:5:0\n"
    ) == out
    assert "3:4:5,4:5:0" == assignment(
        planner, "place", "--brokers", "0,1,2,3,4,5", "--racks", racks, *arguments, "--disable-rack-aware"
    )


def test_racks_on_some_brokers_only_are_refused_as_by_kafka(planner):
    """Racks on some brokers only are refused, as by Kafka; with --disable-rack-aware the topic is placed."""
    arguments = ("--brokers", "0,1,2", "--racks", "0=a,1=b", *PAIR)
    code, _, err = planner(*SIX, *arguments)

    assert 1 == code
    assert "no rack is known for broker 2" in err
    assert "--disable-rack-aware" in err
    assert assignment(planner, *SIX, *arguments, "--disable-rack-aware").startswith("2:0:1,")


def test_json_is_a_reassignment(planner, tmp_path):
    """--format json prints a reassignment in Kafka's format, which the importer reads back."""
    code, out, _ = planner(*SIX, "--brokers", "0,1,2", *PAIR, "--topic", "topic-test4", "--format", "json")
    (tmp_path / "out.json").write_text(out)
    (topic,), _, _ = read_brokers(tmp_path / "out.json")

    assert 0 == code
    assert {"partitions", "version"} == set(json.loads(out))
    assert "topic-test4" == topic.name
    assert [(2, 0, 1), (0, 1, 2), (1, 2, 0)] == [each.replicas for each in topic.partitions[:3]]


def test_added_partitions_start_where_asked(planner):
    """Added partitions have ids from --start-partition on, and continue the turn of the leaders.
    There is no string for kafka-topics, because it omits a list for each existing partition.
    """
    arguments = ("--partitions", 2, "--replication-factor", 1, "--start-index", 0, "--next-replica-shift", 0)
    _, out, _ = planner("place", "--brokers", "0,1,2", *arguments, "--start-partition", 4)

    assert "Partition  Replicas\n        4  1\n        5  2\n" == out


def test_striped_is_krafts(planner):
    """--algorithm striped places as KRaft does, with a seed of java.util.Random."""
    expected = kafka_striped.place([(each, None, False) for each in range(4)], 5, 2, java_random_seed=42)
    arguments = ("--partitions", 5, "--replication-factor", 2, "--algorithm", "striped", "--java-random-seed", 42)

    got = assignment(planner, "place", "--brokers", "0,1,2,3", *arguments)

    assert expected == [tuple(map(int, word.split(":"))) for word in got.split(",")]


def test_a_spec_gives_brokers_and_racks(planner):
    """Brokers and racks come from a spec; Markdown has the same table."""
    arguments = ("--partitions", 1, "--replication-factor", 3, *PAIR, "--format", "markdown")
    code, out, _ = planner("place", EXAMPLES / "expand.yaml", *arguments)

    assert 0 == code
    assert "| Partition | Replicas | Racks |\n|--:|:--|:--|\n| 0 | 3,4,5 | `r2`,`r0`,`r1` |\n" in out
    assert "`--replica-assignment 3:4:5`" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--brokers", "0,1,2", *PAIR, "--start-partition", LARGEST_ID),
            "--start-partition 2147483647: the last id is 2147483652; allowed: ids up to 2147483647",
        ),
        (("--brokers", "0,x", *PAIR), "'0,x' isn't a list of brokers; allowed: ids, each once"),
        (("--brokers", "0,0", *PAIR), "'0,0' isn't a list of brokers"),
        (("--brokers", "0,1,2", "--racks", "0:a", *PAIR), "'0:a' isn't a list of racks"),
        (("--brokers", "0,1,2", "--racks", "5=a", *PAIR), "--racks names broker 5; allowed: 0, 1, 2"),
        (("--brokers", "0,1", *PAIR), "replication factor is 3: it must be from 1 to 2"),
        (PAIR, "the brokers come from --brokers or from SPEC"),
        (("--brokers", "0,1,2", "--start-index", 1), "classic needs --start-index and --next-replica-shift"),
        (("--brokers", "0,1,2", *PAIR, "--java-random-seed", 1), "no --java-random-seed"),
        (("--brokers", "0,1,2", "--algorithm", "striped"), "striped needs --java-random-seed"),
        (("--brokers", "0,1,2", *PAIR, "--format", "json"), "--format json needs --topic"),
        (("--brokers", "0,1,2", *PAIR, "--format", "json", "--topic", "a b"), "--topic 'a b' isn't possible; allowed"),
        ((EXAMPLES / "state" / "seeds" / "tp_re_01.txt", *PAIR), "a state file doesn't list the brokers"),
    ],
)
def test_what_is_wrong_is_said(planner, arguments, said):
    """A wrong option exits with 1; stderr has its value and what is allowed, and stdout is empty."""
    code, out, err = planner(*SIX, *arguments)

    assert (1, "") == (code, out)
    assert said in " ".join(err.split())


def test_the_plain_round_robin_of_introductions(planner):
    """Round robin puts replica j of partition i on broker (i + j) mod n, without Kafka's shift after each round."""
    arguments = ("place", "--algorithm", "round-robin", "--brokers", "0,1,2", "--partitions", 6)

    assert "0:1,1:2,2:0,0:1,1:2,2:0" == assignment(planner, *arguments, "--replication-factor", 2)
    assert "2:0,0:1,1:2,2:0,0:1,1:2" == assignment(planner, *arguments, "--replication-factor", 2, "--start-index", 2)
    more = ("--replication-factor", 2, "--start-partition", 4, "--topic", "t", "--format", "json")
    rows = json.loads(planner(*arguments, *more).out)["partitions"]
    assert [[1, 2], [2, 0], [0, 1], [1, 2], [2, 0], [0, 1]] == [row["replicas"] for row in rows]


def test_a_round_robin_over_racks_alternates_them(planner):
    """With racks, round robin alternates them, as the sweep's candidates do; otherwise it takes brokers by id."""
    racked = ("--brokers", "0,1,2,3", "--racks", "0=a,1=a,2=b,3=b", "--partitions", 4, "--replication-factor", 2)

    assert "0:2,2:1,1:3,3:0" == assignment(planner, "place", "--algorithm", "round-robin", *racked)
    assert "0:1,1:2,2:3,3:0" == assignment(
        planner, "place", "--algorithm", "round-robin", *racked, "--disable-rack-aware"
    )


@pytest.mark.parametrize("option", ["--next-replica-shift", "--java-random-seed"])
def test_a_round_robin_has_a_start_index_alone(planner, option):
    """Options that round robin doesn't have are refused, and so are more replicas than brokers."""
    arguments = ("place", "--algorithm", "round-robin", "--brokers", "0,1", "--partitions", 2)

    ran = planner(*arguments, "--replication-factor", 2, option, 1)
    assert (1, True) == (ran.code, "round-robin takes only --start-index" in ran.err)
    ran = planner(*arguments, "--replication-factor", 3)
    assert (1, True) == (ran.code, "replication factor is 3: it must be from 1 to 2" in ran.err)


def test_seeds_knows_a_round_robin_again(planner, tmp_path):
    """`seeds` recognizes a topic that `place` placed by round robin."""
    made = ("place", "--algorithm", "round-robin", "--brokers", "0,1,2", "--partitions", 9, "--replication-factor", 2)
    (tmp_path / "r.json").write_text(planner(*made, "--topic", "orders", "--format", "json").out)

    ran = planner("seeds", tmp_path / "r.json")

    assert (0, True) == (ran.code, "1 topic: 1 placed by a plain round robin" in ran.out)
    (document,) = json.loads(planner("seeds", tmp_path / "r.json", "--format", "json").out)["topics"]
    assert ("round_robin", 0, None) == (document["verdict"], document["start_index"], document["rack_aware"])


def test_seeds_shows_a_table(planner):
    """`seeds` prints a line per topic, a line per partition that differs, and counts."""
    code, out, _ = planner("seeds", ZOOKEEPER, "--topic", "topic-test4", "--topic", "topic-test1")

    assert 0 == code
    assert (
        "Topic        Partitions  RF  Placed by        Start index  Shift  On                         Differ\n"
        "topic-test1           4   2  start and shift            0  0–1    brokers up to 1                 0\n"
        "topic-test4           6   3  nearest ones               3  0, 3   the brokers with replicas       2\n"
        "\n"
        "topic-test4-4: 3,2,0, where the seeds give 3,1,2\n"
        "topic-test4-5: 0,3,1, where the seeds give 0,2,3\n"
        "\n"
        "2 topics: 1 explained by a start index and a shift, 1 nearly explained by a start index and a shift\n"
    ) == out


def test_seeds_as_json_and_markdown(planner):
    """With the brokers' racks the topic is explained exactly; JSON has all fields, Markdown the same table."""
    options = ("--brokers", "0,1,2,3", "--racks", "0=a,1=b,2=a,3=b", "--topic", "orders")
    code, out, _ = planner("seeds", ZOOKEEPER, *options, "--format", "json")

    assert 0 == code
    assert {
        "topic": "orders",
        "partitions": 10,
        "replication_factor": 2,
        "verdict": "exact",
        "start_index": 0,
        "next_replica_shifts": [0, 3],
        "brokers": [0, 1, 2, 3],
        "brokers_are": "today's brokers",
        "rack_aware": True,
        "created_with_partitions": None,
        "differences": [],
    } == json.loads(out)["topics"][0]
    page = planner("seeds", ZOOKEEPER, *options, "--format", "markdown")[1]
    assert "| `orders` | 10 | 2 | start and shift | 0 | 0, 3 | today's brokers | 0 |" in page


def test_seeds_takes_a_spec(planner):
    """`seeds` takes brokers and racks from a spec."""
    code, out, _ = planner("seeds", EXAMPLES / "tp_demo_03.yaml")

    assert 0 == code
    assert "1 topic: 1 explained by a start index and a shift" in out


def test_seeds_names_what_it_does_not_know(planner):
    """An unknown topic, a rack of an unknown broker, and a missing file are refused."""
    code, _, err = planner("seeds", ZOOKEEPER, "--topic", "nope")
    assert (1, True) == (code, "no such topic; allowed: logs, orders, topic-test1, topic-test4" in err)

    code, _, err = planner("seeds", ZOOKEEPER, "--brokers", "0,1", "--racks", "7=a")
    assert (1, True) == (code, "--racks names broker 7; allowed: 0, 1" in err)

    code, _, err = planner("seeds", "nowhere.txt")
    assert (1, True) == (code, "'nowhere.txt' can't be read" in err)


def test_seeds_refuses_brokers_without_those_of_the_topics(planner):
    """With other brokers than `--brokers`, a topic can't be explained on them; topics that aren't asked for may."""
    code, out, err = planner("seeds", ZOOKEEPER, "--brokers", "1,2,7")
    said = f"--brokers: broker 0 isn't one of them, but has replicas in {ZOOKEEPER}; allowed: a list with all of 0–3"
    assert (1, "", True) == (code, out, said in err)

    assert 0 == planner("seeds", ZOOKEEPER, "--brokers", "0,1", "--topic", "topic-test1").code


@pytest.mark.parametrize("command", [("seeds",), (*SIX, *PAIR)])
def test_a_topic_without_a_name_is_to_be_imported_first(planner, tmp_path, command):
    """These commands have no option for the topic's name, and the advice is one that can be followed."""
    (tmp_path / "r.txt").write_text("0:1,1:0\n")
    code, out, err = planner(*command, tmp_path / "r.txt")

    advice = "or the YAML that planner import --topic NAME makes of it"
    assert (1, "", True) == (code, out, err.endswith(f"(topic in cluster.state.files), {advice}\n"))


BROKERS = tuple((broker, None) for broker in range(4))


def explained(*, edited: int | None) -> Explanation:
    """Eight partitions placed with start index 1 and shift 2; one of them may be edited by hand."""
    lists = kafka_classic.place(BROKERS, 8, 2, start_index=1, next_replica_shift=2)
    rows = [
        Partition(at, tuple(reversed(each)) if at == edited else tuple(each), None) for at, each in enumerate(lists)
    ]
    (found,) = explain_seeds.explain([Topic("orders", tuple(rows))], BROKERS)
    return found


def test_a_document_has_the_pair_and_what_differs() -> None:
    """The JSON has the start index and shift, and each partition that differs, with both lists."""
    document = seeds_document(explained(edited=3))

    assert ("orders", "nearest", 1, [2]) == tuple(
        document[key] for key in ("topic", "verdict", "start_index", "next_replica_shifts")
    )
    (difference,) = document["differences"]
    assert 3 == difference["partition"]
    assert difference["replicas"] == difference["expected"][::-1]


def test_a_table_counts_the_verdicts() -> None:
    """The table ends with the number of topics for each verdict, and names partitions that differ."""
    page = markdown.render(seeds_view([explained(edited=None), explained(edited=3)]))

    assert "2 topics: 1 explained by a start index and a shift, 1 nearly explained by a start index and a shift" in page
    assert "where the seeds give" in page


def test_growth_by_kraft_is_one_of_the_reasons() -> None:
    """A topic that KRaft placed in two runs wasn't edited, and its brokers are the same; the summary allows for it."""
    racks = tuple((broker, "ba"[broker % 2]) for broker in range(1, 5))
    rows = (Partition(0, (2, 1), None), Partition(1, (2, 3), None))
    page = markdown.render(seeds_view(explain_seeds.explain([Topic("t", rows)], racks)))

    assert "1 not explained: edited or grown by KRaft since, or placed with other brokers or racks" in page
