"""A run cordons the brokers that leave, and a rollback restores the settings from before (KIP-1066)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from role_files import loaded

cordons, output = loaded("module_utils/kafka_reassign_cordons"), loaded("module_utils/kafka_reassign_output")
ToolError = loaded("module_utils/kafka_reassign_cluster").ToolError

KEY = "cordoned.log.dirs"
TOO_OLD = (
    "org.apache.kafka.common.errors.InvalidConfigurationException: The cordoned.log.dirs configuration value cannot be "
    "set because it requires metadata.version >= 4.3-IV0"
)


class Cluster:
    """A cluster with each broker's own setting, or None. `older` brokers don't know cordons."""

    def __init__(self, folder: Path, brokers: dict[str, str | None], direction: str = "apply", **more: Any) -> None:
        self.given = {"journal_dir": str(folder), "plan_id": "0123456789abcdef", "direction": direction}
        self.given |= {"leaving_brokers": [int(each) for each in brokers], "tools": {"configs": ["configs"]}}
        self.module = SimpleNamespace(check_mode=more.get("check_mode", False))
        self.brokers, self.older, self.refusal = brokers, more.get("older", False), more.get("refusal", "")
        self.altered = list[list[str]]()

    def required(self, tool: str, *options: str) -> str:
        """All settings of a broker, as Kafka's tool prints them."""
        assert ("configs", "--describe", "--all") == (tool, options[0], options[-1])
        own, lines = self.brokers[options[-2]], [f"All configs for broker {options[-2]} are:"]
        lines += ["  log.dirs=/d1,/d2 sensitive=false synonyms={STATIC_BROKER_CONFIG:log.dirs=/d1,/d2}"]
        first = f"DYNAMIC_BROKER_CONFIG:{KEY}={own}, " if own is not None else ""
        cordon = f"  {KEY}={own or ''} sensitive=false synonyms={{{first}DEFAULT_CONFIG:{KEY}=}}"
        return "\n".join([*lines, *([] if self.older else [cordon])]) + "\n"

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        """Make the requested change, unless Kafka refuses it."""
        assert ["configs", "--alter", "--entity-type", "brokers", "--entity-name"] == argv[:5]
        self.altered.append(argv[5:])
        if self.refusal:
            return 1, "", f"Error while executing config command\n{self.refusal}\n\tat java.base/java.util\n"
        self.brokers[argv[5]] = argv[7].partition("=")[2].strip("[]") if argv[6] == "--add-config" else None
        return 0, f"Completed updating config for broker {argv[5]}.\n", ""

    def ask(self, direction: str = "apply") -> dict[str, Any]:
        """The module's answer for this direction."""
        self.given["direction"] = direction
        found: dict[str, Any] = cordons.cordon(self)
        return found


def record(folder: Path) -> Any:
    """The record's content, or None."""
    found = list(folder.glob("cordons-*.json"))
    return json.loads(found[0].read_text()) if found else None


@pytest.mark.parametrize("before", [None, "/d1", "/d1,/d2"])
def test_rollback_gives_back_what_was_set_before(tmp_path: Path, before: str | None) -> None:
    """Rollback restores no cordon or some log dirs. A second run in each direction changes nothing."""
    cluster = Cluster(tmp_path, {"6": before})

    put = cluster.ask()
    assert (True, ["Broker 6 is cordoned: no new topic gets a replica there."]) == (put["changed"], put["said"])
    assert ({"6": "*"}, {"6": before}) == (cluster.brokers, record(tmp_path))
    assert {"changed": False, "said": []} == cluster.ask()

    lifted = cluster.ask("rollback")
    assert (True, ["Broker 6 is no longer cordoned by this plan."]) == (lifted["changed"], lifted["said"])
    assert ({"6": before}, None) == (cluster.brokers, record(tmp_path))
    assert {"changed": False, "said": []} == cluster.ask("rollback")
    assert 2 == len(cluster.altered)


def test_a_cordon_from_before_stays(tmp_path: Path) -> None:
    """Somebody else's cordon isn't recorded, so rollback keeps it and says so."""
    cluster = Cluster(tmp_path, {"6": "*", "7": None})

    assert ["Broker 7 is cordoned: no new topic gets a replica there."] == cluster.ask()["said"]
    lifted, still = cluster.ask("rollback")["said"]
    assert "Broker 7 is no longer cordoned by this plan." == lifted
    assert "Still cordoned, by no run of this plan on this host: broker 6. kafka-configs.sh --alter --delete" in still
    assert {"6": "*", "7": None} == cluster.brokers


def test_what_somebody_else_has_set_meanwhile_stays(tmp_path: Path) -> None:
    """Rollback keeps and reports a setting that somebody changed. A setting that was removed isn't reported."""
    cluster = Cluster(tmp_path, {"6": None, "7": None})
    assert ["Brokers 6, 7 are cordoned: no new topic gets a replica there."] == cluster.ask()["said"]
    cluster.brokers |= {"6": "/d2", "7": None}

    lifted = cluster.ask("rollback")

    assert ["Somebody else has set cordoned.log.dirs=/d2 on broker 6 meanwhile, which stays."] == lifted["said"]
    assert ({"6": "/d2", "7": None}, None) == (cluster.brokers, record(tmp_path))


def test_a_run_that_was_killed_after_its_record(tmp_path: Path) -> None:
    """The next run cordons, and the recorded setting is still the one from before the first run."""
    cluster = Cluster(tmp_path, {"6": "/d1"})
    cluster.ask()
    cluster.brokers["6"] = None

    assert cluster.ask()["changed"]
    assert {"6": "/d1"} == record(tmp_path)


@pytest.mark.parametrize("more", [{"older": True}, {"refusal": TOO_OLD}], ids=["Kafka 4.2", "metadata.version 4.2"])
def test_a_cluster_without_cordons_is_drained_without_them(tmp_path: Path, more: dict[str, Any]) -> None:
    """If Kafka is too old for cordons, the run says so once, and nothing is recorded."""
    found = Cluster(tmp_path, {"6": None}, **more).ask()

    assert not found["changed"]
    assert [
        "Broker 6 can't be cordoned, which needs Kafka 4.3 and its metadata.version. New topics may get replicas there "
        "while the plan is applied."
    ] == found["said"]
    assert None is record(tmp_path)


def test_what_kafka_refuses_otherwise_stops_the_run(tmp_path: Path) -> None:
    """Any other error stops the run, with Kafka's error and a way to skip cordons. Rollback keeps the record."""
    cluster = Cluster(tmp_path, {"6": None}, refusal="ClusterAuthorizationException: Cluster authorization failed.")
    with pytest.raises(ToolError, match=r"-e kafka_reassign_cordon=false skips it: (?s:.*)authorization failed"):
        cluster.ask()
    assert None is record(tmp_path)

    cluster.refusal = ""
    cluster.ask()
    cluster.refusal = "TimeoutException"
    with pytest.raises(ToolError, match=r"the cordon of broker 6 couldn't be taken off: (?s:.*)Timeout"):
        cluster.ask("rollback")
    assert {"6": None} == record(tmp_path)


def test_check_mode_says_what_would_change(tmp_path: Path) -> None:
    """With --check, neither the cluster nor the admin host changes."""
    folder = tmp_path / "new"
    trying = Cluster(folder, {"6": None}, check_mode=True)

    found = trying.ask()

    assert (True, ["Broker 6 would be cordoned: no new topic gets a replica there."]) == (
        found["changed"],
        found["said"],
    )
    assert ([], False) == (trying.altered, folder.exists())

    Cluster(folder, {"6": None}).ask()
    back = Cluster(folder, {"6": "*"}, check_mode=True)
    assert ["Broker 6 would be no longer cordoned by this plan."] == back.ask("rollback")["said"]
    assert ([], {"6": None}) == (back.altered, record(folder))


def test_a_cordon_of_the_brokers_file_is_in_force_but_not_its_own(tmp_path: Path) -> None:
    """In Kafka 4.3.1, a static setting is in force without a dynamic one, but isn't the broker's dynamic one."""
    line = f"  {KEY}=* sensitive=false synonyms={{STATIC_BROKER_CONFIG:{KEY}=*, DEFAULT_CONFIG:{KEY}=}}\n"
    assert ("*", None) == output.cordon(line)
    assert (None, None) == output.cordon("All configs for broker 6 are:\n")
    # Kafka 4.1.1 accepts the setting without knowing it, and prints it like this.
    unknown = f"  {KEY}=null sensitive=true synonyms={{DYNAMIC_BROKER_CONFIG:{KEY}=null}}\n"
    assert (None, None) == output.cordon(unknown)
