"""How much work a solve may do, counted by the linear programs that it solves: on every machine the same.

A clock would let a busy machine find another plan than an idle one.
"""

from __future__ import annotations

from typing import NamedTuple


class Worth(NamedTuple):
    """Columns of programs that a solve is worth, and programs of all its columns where that is more."""

    columns: int
    programs: int


# What the balance that was asked for is worth, and each of the others that a sweep tries beside it.
ASKED, OTHERS = Worth(12_000_000, 600), Worth(1_000_000, 600)
# A small program takes so many times as long as its columns say, a large one as if it had so many more.
_TIMES, _MORE = 10, 5_000


class Effort:
    """An account of work. A part of it is an account, too; what a part leaves stays with the whole."""

    def __init__(self, columns: int, whole: Effort | None = None) -> None:
        self._left, self._whole = columns, whole

    @staticmethod
    def of(worth: Worth, columns: int) -> Effort:
        """The account of a solve whose programs have so many columns."""
        return Effort(max(worth.columns, worth.programs * columns))

    @property
    def left(self) -> int:
        """Columns that may still be solved."""
        return self._left if self._whole is None else min(self._left, self._whole.left)

    @property
    def spent(self) -> bool:
        """True where nothing is left."""
        return self.left <= 0

    def spend(self, columns: int) -> None:
        """A program of so many columns was solved."""
        self._left -= columns + min(_TIMES * columns, _MORE)
        if self._whole is not None:
            self._whole.spend(columns)

    def part(self, share: float) -> Effort:
        """A share of what is left."""
        return Effort(int(max(self.left, 0) * share), self)
