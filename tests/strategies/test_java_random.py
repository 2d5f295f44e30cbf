"""Draws of java.util.Random; Java 17 printed the expected numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.strategies.java_random import JavaHashMap, JavaRandom, hash_map_order, string_hash, utf16_key


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (42, [-1170105035, 234785527, -1360544799]),
        (-1, [1155099827, 1887904451, 52699159]),
        (-(2**63), [-1155484576, -723955400, 1033096058]),
    ],
)
def test_next_int_without_bound(seed: int, expected: list[int]) -> None:
    """Any int can be drawn, also negative ones, and any long is a seed."""
    random = JavaRandom(seed)
    assert expected == [random.next_int() for _ in expected]


def test_next_int_with_bounds() -> None:
    """Bounds that are powers of two take the high bits, others the remainder; large bounds reject some draws."""
    random = JavaRandom(42)
    for _ in range(3):
        random.next_int()
    bounds = [100, 64, 7, 1, 2**31 - 1, 2**30 + 1, 2**30 + 1]
    expected = [84, 19, 4, 0, 1519796918, 196118093, 969067502]
    assert expected == [random.next_int(bound) for bound in bounds]


@pytest.mark.parametrize("bound", [0, -1])
def test_bound_must_be_positive(bound: int) -> None:
    """A bound below 1 is refused with its value."""
    with pytest.raises(ValueError, match=f"not {bound}$"):
        JavaRandom(1).next_int(bound)


def test_shuffle() -> None:
    """A shuffle gives the permutation of Collections.shuffle."""
    items = list(range(10))
    JavaRandom(7).shuffle(items)
    assert [0, 1, 9, 3, 7, 4, 8, 5, 2, 6] == items


@given(st.integers(), st.integers(1, 2**31 - 1))
def test_next_int_stays_below_its_bound(seed: int, bound: int) -> None:
    """Whatever the seed, 0 <= draw < bound."""
    assert 0 <= JavaRandom(seed).next_int(bound) < bound


def test_string_hash() -> None:
    """Java's String.hashCode over UTF-16 units, but without a sign."""
    assert [0, 97, 2112, 2112, 2**31] == [string_hash(s) for s in ("", "a", "Aa", "BB", "polygenelubricants")]


def test_hash_map_order() -> None:
    """The order of Optionals in Java's HashMap: the empty one first, then by hash, not by name."""
    names = [None, "a", "rack-1", "rack-10", "eu-west-1a", "eu-west-1b", "eu-west-1c", "Zürich", "架", "😀"]
    expected = [None, "a", "rack-10", "rack-1", "Zürich", "架", "😀", "eu-west-1b", "eu-west-1c", "eu-west-1a"]
    assert expected == hash_map_order(names)


def test_hash_map_order_of_a_grown_map() -> None:
    """A map that is more than three quarters full doubles, which changes its order."""
    expected = ["rack3", "rack4", "rack5", "rack6", "rack0", "rack1", "rack2", "rack28"]
    assert expected == hash_map_order([f"rack{i}" for i in range(40)])[:8]


def test_hash_map_order_of_equal_hashes() -> None:
    """Keys in one bucket keep the order in which they were added."""
    assert ["BBBB", "AaAa"] == hash_map_order(["BBBB", "AaAa"])
    assert ["AaAa", "BBBB"] == hash_map_order(["AaAa", "BBBB"])


def test_a_hash_map_doubles_when_it_or_a_bucket_is_full() -> None:
    """A map doubles at three quarters full, or at a ninth key in one bucket if it has fewer than 64 buckets."""
    assert [16, 0, 1, 3] == [*JavaHashMap.of([3, 16, 1, 0], int)]
    assert [*range(13)] == [*JavaHashMap.of(reversed(range(13)), int)]
    strided = JavaHashMap.of(range(0, 160, 16), int)
    assert [0, 32, 64, 96, 128, 16, 48, 80, 112, 144] == [*strided]
    del strided[64]
    assert (9, [0, 32, 96]) == (len(strided), [*strided][:3])


def test_compute_if_absent_puts_in_front() -> None:
    """HashMap.computeIfAbsent puts a new key in front of its bucket; an existing key keeps its value and place."""
    made = JavaHashMap[int, str](int)
    assert ["a", "b", "a"] == [made.compute_if_absent(key, value) for key, value in ((0, "a"), (16, "b"), (0, "c"))]
    assert [16, 0] == [*made]


def test_utf16_key() -> None:
    """Java sorts an emoji (a surrogate pair) before a private-use character, Python after it."""
    assert ["😀", "\uf000"] == sorted(["\uf000", "😀"], key=utf16_key)
