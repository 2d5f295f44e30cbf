"""What the YAML says of growth by the month, and of the brokers that there are to buy: values alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """Topics that a shell-style pattern matches grow by `ppm` millionths a month, compounded."""

    topics: str
    ppm: int


@dataclass(frozen=True)
class BrokerClass:
    """A broker that can be added: its room for log dirs and what its network carries each way; None: not stated."""

    name: str
    disk_bytes: int | None = None
    network_bytes_per_sec: int | None = None


@dataclass(frozen=True)
class Monthly:
    """`growth` and `cluster.broker_classes`; of several rates that match a topic, the first one counts."""

    rates: tuple[Rate, ...] = ()
    classes: tuple[BrokerClass, ...] = ()
