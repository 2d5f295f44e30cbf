"""The default caps of each `cluster.profile`, and the capacities that brokers and their classes state.

A profile sets the default of `max_replicas` for brokers whose capacity states none. It sets no other default.
"""

from collections.abc import Mapping
from typing import Any

from planner.inputs.yaml_source import Document
from planner.model.amounts import parse_bytes, parse_bytes_per_sec, unless_none
from planner.model.spec import BrokerClass

# Caps per broker that platforms publish (docs/caps.md has the pages). Above its cap, MSK refuses updates.
_MSK_SIZES = {"large": 1500, "xlarge": 1500, "2xlarge": 3000, "4xlarge": 6000, "8xlarge": 6000, "12xlarge": 6000}
PROFILES: Mapping[str, int] = {
    "msk.t3.small": 300,
    **{f"msk.{family}.{size}": cap for family in ("m5", "m7g") for size, cap in _MSK_SIZES.items()},
    "msk.m5.16xlarge": 6000,
    "msk.m5.24xlarge": 6000,
    "msk.m7g.16xlarge": 6000,
    "confluent-platform": 4000,
    "strimzi": 10_000,
}
# Platforms that place replicas themselves, by the beginning of their names.
REFUSED = {
    "msk.express": "Amazon MSK places the replicas of Express brokers itself",
    "confluent-cloud": "Confluent Cloud places replicas itself",
}


def broker_class(document: Document, name: str, stated: Mapping[str, Any]) -> BrokerClass:
    """The capacity that a class, or a single broker, states. Its cap on replicas may come from `cluster.profile`."""
    profile = PROFILES.get(document.get("cluster", "profile") or "")
    return BrokerClass(
        name,
        disk_bytes=unless_none(stated.get("disk"), parse_bytes),
        network_bytes_per_sec=unless_none(stated.get("network"), parse_bytes_per_sec),
        max_replicas=stated.get("max_replicas", profile),
        max_leaders=stated.get("max_leaders"),
        max_disk_bytes=unless_none(stated.get("max_disk"), parse_bytes),
    )


def broker_classes(document: Document) -> tuple[BrokerClass, ...]:
    """`cluster.broker_classes`, in the file's order."""
    classes = (document.get("cluster", "broker_classes") or {}).items()
    return tuple(broker_class(document, name, stated) for name, stated in classes)
