"""java.util.Random, and the orders of Java's strings and hash maps: a seed gives the same result here as in Kafka."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Generic, TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key")
Value = TypeVar("Value")

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK = (1 << 48) - 1


class JavaRandom:
    """The 48-bit linear congruential generator that the documentation of java.util.Random prescribes.

    Mutable on purpose, like its model: Kafka's placer hands one generator from topic to topic.
    """

    def __init__(self, seed: int) -> None:
        """`seed` is a Java long; of a wider number, only the low 48 bits count, as in Java."""
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next(self, bits: int) -> int:
        """The next `bits` high bits of the state, unsigned."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> (48 - bits)

    def next_int(self, bound: int | None = None) -> int:
        """`nextInt()`, any Java int, or `nextInt(bound)`, 0 to bound - 1. ValueError unless bound is positive."""
        if bound is None:
            value = self._next(32)
            return value - (1 << 32) if value >> 31 else value
        if bound <= 0:
            raise ValueError(f"bound must be positive, not {bound}")
        if bound & (bound - 1) == 0:
            return (bound * self._next(31)) >> 31
        # Draws from the last, incomplete round are rejected.
        while True:
            bits = self._next(31)
            value = bits % bound
            if bits - value + bound - 1 < 1 << 31:
                return value

    def shuffle(self, items: list[Item]) -> None:
        """`Collections.shuffle(items, this)`: shuffles in place, from the end to the front."""
        for size in range(len(items), 1, -1):
            other = self.next_int(size)
            items[size - 1], items[other] = items[other], items[size - 1]


def utf16_key(text: str) -> bytes:
    """Sort key in the order of Java's `String.compareTo`: by UTF-16 unit, not by code point."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """Java's `String.hashCode`, as an unsigned 32-bit number."""
    value = 0
    units = utf16_key(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def partition_hash(partition: tuple[str, int]) -> int:
    """The hash of Kafka's `TopicPartition`, from a topic and a number."""
    return 31 * (31 + partition[1]) + string_hash(partition[0])


def hash_map_order(keys: Iterable[str | None]) -> list[str | None]:
    """Distinct `keys`, in the order in which a `HashMap<Optional<String>, ?>` iterates them if added in this order.

    None is the empty Optional. The order isn't Java's where Java makes a bucket a tree (see `JavaHashMap`).
    """
    # An Optional's hash is the value's own, or 0.
    return [*JavaHashMap.of(keys, lambda key: 0 if key is None else string_hash(key))]


class JavaHashMap(MutableMapping[Key, Value], Generic[Key, Value]):
    """A `HashMap` that iterates in Java's order: by bucket, and within a bucket in the order of insertion.

    `capacity` is the argument of its constructor. As in Java, a bucket with nine keys doubles a table of fewer than 64
    buckets. In a larger table Java makes such a bucket a tree; this class doesn't reproduce a tree's order.
    """

    def __init__(self, hashed: Callable[[Key], int], capacity: int = 16) -> None:
        self._hashed = hashed
        self._buckets = 1 << max(capacity - 1, 0).bit_length()
        self._values: dict[Key, Value] = {}
        self._in_bucket: dict[int, dict[Key, None]] = {}

    @classmethod
    def of(cls, keys: Iterable[Key], hashed: Callable[[Key], int], capacity: int = 16) -> "JavaHashMap[Key, None]":
        """A `HashSet` of the keys, added in this order; Java gives a set made from a collection at least 16 buckets."""
        keyed = JavaHashMap[Key, None](hashed, max(capacity, 16))
        for key in keys:
            keyed[key] = None
        return keyed

    def __getitem__(self, key: Key) -> Value:
        return self._values[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        is_new = key not in self._values
        self._values[key] = value
        if is_new:
            bucket = self._in_bucket.setdefault(self._bucket(key), {})
            bucket[key] = None
            if len(bucket) > 8 and self._buckets < 64:
                self._double()
            if len(self._values) > self._buckets * 3 // 4:
                self._double()

    def compute_if_absent(self, key: Key, value: Value) -> Value:
        """The map's value for `key`; if it has none, `value` is added, in front of its bucket and not at the end."""
        if len(self._values) > self._buckets * 3 // 4:
            self._double()
        if key not in self._values:
            self._values[key] = value
            bucket = self._in_bucket.setdefault(self._bucket(key), {})
            self._in_bucket[self._bucket(key)] = {key: None, **bucket}
            # computeIfAbsent counts without the new key, and put with it: a bucket of 8 keys, and of 9.
            if len(bucket) > 6 and self._buckets < 64:
                self._double()
        return self._values[key]

    def __delitem__(self, key: Key) -> None:
        del self._values[key], self._in_bucket[self._bucket(key)][key]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Key]:
        return (key for number in sorted(self._in_bucket) for key in [*self._in_bucket[number]])

    def _bucket(self, key: Key) -> int:
        hashed = self._hashed(key) & 0xFFFFFFFF
        return (hashed ^ hashed >> 16) & (self._buckets - 1)

    def _double(self) -> None:
        ordered = [*self]
        self._buckets *= 2
        self._in_bucket = {}
        for key in ordered:
            self._in_bucket.setdefault(self._bucket(key), {})[key] = None
