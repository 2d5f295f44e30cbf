"""Reads what `kafka-configs --describe` prints; the samples are from Kafka 4.3, shortened."""

from __future__ import annotations

import pytest

from planner.inputs.importers.brokers_and_configs import as_topics_inherit
from planner.inputs.importers.state_parts import StatePart
from planner.inputs.state.state_files import read_part
from planner.model.errors import ImportStateError

OWN = """\
Dynamic configs for topic clicks are:
Dynamic configs for topic orders are:
  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, \
DEFAULT_CONFIG:log.cleanup.policy=delete}
  retention.ms=86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=86400000}
"""
ALL = """\
All configs for topic clicks are:
  cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}
  leader.replication.throttled.replicas= sensitive=false synonyms={}
  min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=2, \
STATIC_BROKER_CONFIG:min.insync.replicas=1, DEFAULT_CONFIG:min.insync.replicas=1}
  segment.bytes=5000000 sensitive=false synonyms={STATIC_BROKER_CONFIG:log.segment.bytes=5000000, \
DEFAULT_CONFIG:log.segment.bytes=1073741824}
All configs for topic orders are:
  min.insync.replicas=3 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=3, \
DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=2, DEFAULT_CONFIG:min.insync.replicas=1}
"""
BROKERS = """\
Dynamic configs for broker 1 are:
  log.segment.bytes=7 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.segment.bytes=7}
Dynamic configs for broker 2 are:
  log.segment.bytes=7 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.segment.bytes=7}
  log.retention.ms=9 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=9}
  sasl.jaas.config=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:sasl.jaas.config=null}
Default configs for brokers in the cluster are:
  min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=2}
"""


def read(text: str) -> StatePart:
    """Reads the text as a file named c.txt."""
    return read_part(text, "c.txt")


def test_topics_own_configurations() -> None:
    """Each topic's own configuration is read, also an empty one; a value may contain a comma."""
    part = read(f"[main] INFO chatter\n{OWN}")
    orders = (("cleanup.policy", "compact,delete"), ("retention.ms", "86400000"))
    assert {"clicks": (), "orders": orders} == part.configs
    assert () == part.config_defaults


def test_cordoned_log_dirs_are_those_of_each_broker() -> None:
    """All, some or no log dirs of a broker are cordoned, as Kafka 4.3.1 prints them (KIP-1066); 4.1.1 prints null."""
    lines = {3: "/d1,/d2", 4: "*", 5: "", 6: "null"}
    text = "".join(
        f"Dynamic configs for broker {broker} are:\n"
        f"  cordoned.log.dirs={dirs} sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:cordoned.log.dirs={dirs}, "
        "DEFAULT_CONFIG:cordoned.log.dirs=}\n"
        for broker, dirs in lines.items()
    )
    assert {3: ("/d1", "/d2"), 4: ("*",)} == read(text).cordoned


def test_what_is_inherited_is_told_by_its_synonyms() -> None:
    """The synonyms of a topic's own value show what other topics inherit; Kafka's own defaults are left out."""
    part = read(ALL)
    assert {"clicks": (), "orders": (("min.insync.replicas", "3"),)} == part.configs
    assert (("min.insync.replicas", "2"), ("segment.bytes", "5000000")) == part.config_defaults
    orders = ALL[ALL.index("All configs for topic orders") :]
    assert (("min.insync.replicas", "2"),) == read(orders).config_defaults


def test_brokers_configurations_are_what_topics_inherit() -> None:
    """Cluster-wide values and those that all brokers share are what topics inherit, under the topics' key names."""
    part = read(BROKERS)
    assert (("min.insync.replicas", "2"), ("segment.bytes", "7")) == part.config_defaults
    assert {} == part.configs


def test_a_broker_may_want_more_in_sync() -> None:
    """If brokers differ in min.insync.replicas, the largest counts, because any broker may lead; a note says so."""
    more = BROKERS.replace("log.retention.ms=9", "min.insync.replicas=3")
    more = more.replace("DYNAMIC_BROKER_CONFIG:log.retention.ms=9", "DYNAMIC_BROKER_CONFIG:min.insync.replicas=3")
    part = read(more)
    assert ("min.insync.replicas", "3") in part.config_defaults
    assert ("brokers don't agree on the min.insync.replicas that topics inherit (2, 3): 3 counts here",) == part.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN + "  retention", "c.txt:5:1: 'retention' isn't a key with its value; allowed: what kafka-configs"),
        (OWN + OWN, "c.txt:5:1: clicks: the topic is here twice, or no topic can have this name"),
    ],
)
def test_what_was_cut_or_glued_is_refused(text: str, message: str) -> None:
    """A truncated line or a repeated output is refused with its line."""
    with pytest.raises(ImportStateError) as error:
        read(text)
    assert str(error.value).startswith(message)


def test_only_what_topics_inherit_is_taken_of_brokers() -> None:
    """Of a broker's znode only the keys that topics inherit are read, not its throttles."""
    found = as_topics_inherit({"log.retention.ms": "5", "leader.replication.throttled.rate": "1"})
    assert (("retention.ms", "5"),) == found
