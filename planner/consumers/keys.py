"""Where a key goes: Kafka's default partitioner, and what a changed partition count does to it.

Source: Kafka 4.1, org.apache.kafka.common.utils.Utils.murmur2 and BuiltInPartitioner.partitionForKey.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """The partition that the Java client's default partitioner gives to a record with this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 that Kafka uses, unsigned."""
    value = (_SEED ^ len(data)) & _MASK
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = (value * _MULTIPLIER & _MASK) ^ word
    if rest := data[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def moved_share(before: int, after: int) -> Fraction:
    """The share of all keys that go to another partition once a topic has `after` partitions instead of `before`.

    A hash stays where both remainders are the same: once for each partition of the smaller count, in every stretch as
    long as the least common multiple of both.
    """
    return 1 - Fraction(min(before, after), lcm(before, after))
