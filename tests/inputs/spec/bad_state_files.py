"""Wrong state files: data for test_reading."""

from __future__ import annotations

from bad_cluster_specs import line

DESCRIBE = """\
Topic: orders\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: min.insync.replicas=1
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2
\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2,3
"""
LOG_DIRS = '{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"orders-0","size":5}],"error":null}]}]}'
MOVING = "\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2\tAdding Replicas: 3\tRemoving Replicas: "

# name, describe.txt, log-dirs.txt, "file:line:column key", part of the message
STATE_CASES = [
    (
        "empty",
        "",
        LOG_DIRS,
        "describe.txt:1:1 cluster.state.assignment",
        "no assignment in a known format: the file is empty; allowed: ",
    ),
    (
        "other_tool",
        "Usage: kafka-topics\n",
        LOG_DIRS,
        "describe.txt:1:1 cluster.state.assignment",
        "format: the file begins with 'Usage: kafka-topics'",
    ),
    (
        "swapped",
        LOG_DIRS,
        LOG_DIRS,
        "describe.txt:1:1 cluster.state.assignment",
        "no assignment in a known format: the file has sizes; allowed: ",
    ),
    (
        "log_line",
        "WARN hello\n" + DESCRIBE,
        LOG_DIRS,
        "describe.txt:1:1 cluster.state.assignment",
        "isn't a topic or a partition",
    ),
    ("no_heading", DESCRIBE.split("\n", 1)[1], LOG_DIRS, "describe.txt:1:2 orders", "has no heading"),
    (
        "cut",
        line(3, "", DESCRIBE),
        LOG_DIRS,
        "describe.txt:1:1 orders",
        "PartitionCount is 2, but lines of 1 partition follow",
    ),
    (
        "gap",
        line(3, "\tTopic: orders\tPartition: 2\tLeader: 2\tReplicas: 2,3\tIsr: 2,3", DESCRIBE),
        LOG_DIRS,
        "describe.txt:3:2 orders-2",
        "partition 1 of orders is missing before 2",
    ),
    (
        "partition_twice",
        line(1, "Topic: orders\tPartitionCount: 3", DESCRIBE) + DESCRIBE.splitlines()[2],
        LOG_DIRS,
        "describe.txt:4:2 orders-1",
        "partition 1 of orders is here twice, first at",
    ),
    ("twice", DESCRIBE + DESCRIBE.splitlines()[0], LOG_DIRS, "describe.txt:4:1 orders", "the topic is here twice"),
    (
        "reassigning",
        line(3, MOVING, DESCRIBE),
        LOG_DIRS,
        "describe.txt:3:2",
        "is being reassigned (Adding Replicas: 3)",
    ),
    (
        "replica_word",
        line(3, "\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,x\tIsr: 2", DESCRIBE),
        LOG_DIRS,
        "describe.txt:3:2 cluster.state.assignment",
        "Replicas has 'x'; allowed: brokers' ids",
    ),
    (
        "replica_twice",
        line(3, "\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,2\tIsr: 2", DESCRIBE),
        LOG_DIRS,
        "describe.txt:3:2 orders-1",
        "broker 2 is 2 times in replicas",
    ),
    (
        "no_replicas",
        line(3, "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: \tIsr: ", DESCRIBE),
        LOG_DIRS,
        "describe.txt:3:2 orders-1",
        "has no replicas",
    ),
    (
        "unknown_broker",
        line(3, "\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,7\tIsr: 2", DESCRIBE),
        LOG_DIRS,
        "describe.txt:3:2 orders-1",
        "has a replica on broker 7, which isn't in cluster.brokers; allowed: 1, 2, 3, 4, 5, 6",
    ),
    (
        "min_insync",
        line(1, "Topic: orders\tPartitionCount: 2\tConfigs: min.insync.replicas=two", DESCRIBE),
        LOG_DIRS,
        "describe.txt:2:2 orders-0",
        "min.insync.replicas is 'two'",
    ),
    ("topic_name", DESCRIBE.replace("orders", "or/ders"), LOG_DIRS, "describe.txt:2:2 or/ders-0", "can't be a topic's"),
    (
        "json_cut",
        '{"version":1,"partitions":[{"topic":"a"',
        LOG_DIRS,
        "describe.txt:1:40 cluster.state.assignment",
        "not JSON: Expecting ','",
    ),
    (
        "json_no_replicas",
        '{"partitions":[\n {"topic":"orders","partition":0,"replicas":[1]},\n {"topic":"orders","partition":1}]}',
        LOG_DIRS,
        "describe.txt:3:2 partitions[1].replicas",
        "None aren't replicas",
    ),
    (
        "json_version",
        '{"version":2,"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}',
        LOG_DIRS,
        "describe.txt:1:1 cluster.state.assignment",
        "not a reassignment: version is 2",
    ),
    (
        "json_key_twice",
        '{"partitions":[{"topic":"orders","partition":0,"partition":1,"replicas":[1]}]}',
        LOG_DIRS,
        "describe.txt:1:1 cluster.state.assignment",
        "the key 'partition' is here twice among topic, partition, replicas",
    ),
    (
        "sizes_format",
        DESCRIBE,
        DESCRIBE,
        "log-dirs.txt:1:1 cluster.state.sizes",
        "no sizes in a known format: the file has an assignment; allowed: ",
    ),
    ("sizes_cut", DESCRIBE, LOG_DIRS[:-3], "log-dirs.txt:1:100 cluster.state.sizes", "not JSON"),
    (
        "size_negative",
        DESCRIBE,
        LOG_DIRS.replace("5", "-5"),
        "log-dirs.txt:1:1 brokers[0].logDirs[0].partitions[0].size",
        "-5 isn't a number of bytes",
    ),
    (
        "size_of_nothing",
        DESCRIBE,
        LOG_DIRS.replace("orders-0", "orders"),
        "log-dirs.txt:1:1 brokers[0].logDirs[0].partitions[0].partition",
        "'orders' isn't topic-partition",
    ),
    (
        "size_of_endless_partition",
        DESCRIBE,
        LOG_DIRS.replace("orders-0", "orders-" + "9" * 5000),
        "log-dirs.txt:1:1 brokers[0].logDirs[0].partitions[0].partition",
        "isn't topic-partition",
    ),
    (
        "sizes_twice",
        DESCRIBE,
        LOG_DIRS + "\n" + LOG_DIRS,
        "log-dirs.txt:2:1 cluster.state.sizes",
        "something follows the JSON; allowed: what kafka-log-dirs --describe prints for all brokers at once",
    ),
    (
        "sizes_of_another_cluster",
        DESCRIBE,
        LOG_DIRS.replace("orders", "clicks"),
        "s.yaml:5:37 cluster.state.sizes",
        "'log-dirs.txt' has none of the assignment's partitions",
    ),
]
