"""The nine clusters for which the benchmark measures plans: made from a name and a seed, the same on every machine.

Each starts from Kafka's own placement with one random start index and shift per topic, as if its topics had been
created one by one, and names a change: brokers added or removed, a rack added, a replication factor raised.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.document_fields import ReplicationFactorRow
from planner.model.problem import IntArray, LongArray
from planner.model.spec import Changes, Spec
from planner.strategies import kafka_classic

FIRST_BROKER = 100
GIGABYTE = 10**9


@dataclass(frozen=True)
class Recipe:
    """The parameters of a case; rack counts of 0 mean brokers without racks.

    `mean_partitions` is the approximate mean of partitions per topic (the draw is log-normal); `size_sigma` is the
    standard deviation of the logarithm of the topics' sizes; with 0 every replica has exactly one gigabyte.
    """

    brokers_before: int
    racks_before: int
    brokers_after: int
    racks_after: int
    topics: int
    mean_partitions: int
    replication_factor: int
    target_replication_factor: int | None
    size_sigma: float


RECIPES = {
    "expand-small": Recipe(6, 3, 9, 3, 20, 10, 3, None, 0.0),
    "expand-mid": Recipe(12, 3, 18, 3, 200, 25, 3, None, 1.0),
    "expand-big": Recipe(60, 3, 90, 3, 1000, 50, 3, None, 1.0),
    "raise-rf": Recipe(9, 3, 9, 3, 60, 12, 2, 3, 0.5),
    "add-rack": Recipe(8, 2, 12, 3, 60, 12, 3, None, 0.5),
    "decommission": Recipe(10, 5, 8, 4, 100, 12, 3, None, 0.5),
    "skewed-sizes": Recipe(9, 3, 12, 3, 80, 16, 3, None, 2.0),
    "no-racks": Recipe(5, 0, 7, 0, 40, 15, 2, None, 1.0),
    "huge": Recipe(120, 6, 150, 6, 3000, 112, 3, None, 1.0),
}
CASES: tuple[str, ...] = tuple(RECIPES)


@dataclass(frozen=True)
class BenchCase:
    """A cluster and its change. P partitions, in the order of their topics and ids.

    topic_of (P,) index into topic_names; partition_ids (P,); replicas (P, R) broker ids, preferred leader first;
    size_bytes (P,) bytes of one replica. `target_rf` None: the replication factor stays.
    """

    name: str
    brokers_before: tuple[Broker, ...]
    brokers_after: tuple[Broker, ...]
    target_rf: int | None
    topic_names: tuple[str, ...]
    topic_of: IntArray
    partition_ids: IntArray
    replicas: IntArray
    size_bytes: LongArray

    @property
    def replica_count(self) -> int:
        """Replicas after the change."""
        return len(self.topic_of) * (self.target_rf or self.replicas.shape[1])


def make(name: str, seed: str = "public") -> BenchCase:
    """The case with this name; another `seed`, any text, gives another cluster by the same recipe.

    KeyError for a name that isn't in `CASES`.
    """
    return from_recipe(name, RECIPES[name], seed)


def from_recipe(name: str, recipe: Recipe, seed: str) -> BenchCase:
    """A case by any recipe; its name and the seed determine the random draws."""
    rng = random.Random(f"{name}/{seed}")
    before = _brokers(recipe.brokers_before, recipe.racks_before)
    # Topics are drawn one after the other, because the order of the draws decides the result.
    drawn = [_topic(recipe, before, rng) for _ in range(recipe.topics)]
    counts = [len(replicas) for replicas, _ in drawn]
    return BenchCase(
        name=f"{name}/{seed}",
        brokers_before=before,
        brokers_after=_brokers_after(name, recipe, before),
        target_rf=recipe.target_replication_factor,
        topic_names=tuple(f"t{topic:04d}" for topic in range(recipe.topics)),
        topic_of=np.repeat(np.arange(recipe.topics, dtype=np.int32), counts),
        partition_ids=np.concatenate([np.arange(count, dtype=np.int32) for count in counts]),
        replicas=np.concatenate([replicas for replicas, _ in drawn]),
        size_bytes=np.concatenate([sizes for _, sizes in drawn]),
    )


def to_spec(case: BenchCase) -> Spec:
    """The case as the planner's input: each preferred leader leads, and everything may move."""
    before = {broker.id for broker in case.brokers_before}
    after = {broker.id for broker in case.brokers_after}
    factor = case.target_rf
    changes = Changes(
        add_brokers=tuple(broker for broker in case.brokers_after if broker.id not in before),
        remove_brokers=tuple(sorted(before - after)),
        set_replication_factor=() if factor is None else (ReplicationFactorRow("*", factor),),
    )
    return Spec(cluster=Cluster(case.name, case.brokers_before, tuple(_topics(case))), changes=changes)


def _brokers(count: int, racks: int) -> tuple[Broker, ...]:
    """Brokers 100, 101, …, assigned to racks r0, r1, … in turn; without racks if `racks` is 0."""
    return tuple(Broker(FIRST_BROKER + i, f"r{i % racks}" if racks else None) for i in range(count))


def _brokers_after(name: str, recipe: Recipe, before: tuple[Broker, ...]) -> tuple[Broker, ...]:
    """The brokers after the change; those that stay keep their rack."""
    if name == "add-rack":
        ids = range(FIRST_BROKER + recipe.brokers_before, FIRST_BROKER + recipe.brokers_after)
        return before + tuple(Broker(broker, f"r{recipe.racks_before}") for broker in ids)
    if recipe.brokers_after < recipe.brokers_before:
        return before[: recipe.brokers_after]
    return _brokers(recipe.brokers_after, recipe.racks_after)


def _topic(recipe: Recipe, brokers: tuple[Broker, ...], rng: random.Random) -> tuple[IntArray, LongArray]:
    """One topic's replica lists (n, R) of broker ids and the bytes of one replica of each partition (n,)."""
    partitions = max(1, int(rng.lognormvariate(0, 0.8) * recipe.mean_partitions * 0.73))
    sigma = recipe.size_sigma
    topic_bytes = rng.lognormvariate(0, sigma) * GIGABYTE if sigma else GIGABYTE
    lists = kafka_classic.place(
        [(broker.id, broker.rack) for broker in brokers],
        partitions,
        recipe.replication_factor,
        start_index=rng.randrange(len(brokers)),
        next_replica_shift=rng.randrange(len(brokers)),
    )
    sizes = [int(topic_bytes * rng.lognormvariate(0, sigma / 4)) if sigma else GIGABYTE for _ in lists]
    return np.array(lists, dtype=np.int32), np.array(sizes, dtype=np.int64)


def _topics(case: BenchCase) -> Iterable[Topic]:
    """The case's topics with their partitions; arrays become lists first, because reading single elements is slow."""
    ids, replicas, sizes = case.partition_ids.tolist(), case.replicas.tolist(), case.size_bytes.tolist()
    bounds = np.searchsorted(case.topic_of, np.arange(len(case.topic_names) + 1)).tolist()
    for name, first, end in zip(case.topic_names, bounds, bounds[1:], strict=False):
        rows = zip(ids[first:end], replicas[first:end], sizes[first:end], strict=True)
        yield Topic(name, tuple(Partition(i, tuple(brokers), brokers[0], None, size) for i, brokers, size in rows))
