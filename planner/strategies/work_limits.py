"""How much work a solve may do: all limits of the strategies, and an account of the linear programs that it solves.

Work is counted, on every machine the same: a clock would let a busy machine find another plan than an idle one.

Each limit says what it limits and what it buys. Percentages of bytes are what plans move more without the whole part,
as `python -m benchmarks --ablate` shows; seconds are of two cores. Where no figure stands, none was measured.
"""

from typing import NamedTuple, Self


class Worth(NamedTuple):
    """Columns of programs that a solve is worth, and programs of all its columns where that is more."""

    columns: int
    programs: int


# What the balance that was asked for is worth, each of the others that a sweep tries beside it, and each of thousands
# of clusters that could be bought. On the clusters of examples/size.yaml the last takes a third of the time of the
# second, for 0.02 % more bytes at most and a bound that proves up to 5 % less.
ASKED, OTHERS, SIZED = Worth(12_000_000, 600), Worth(1_000_000, 600), Worth(0, 0)
# A small program takes so many times as long as its columns say, a large one as if it had so many more.
_TIMES, _MORE = 10, 5_000

# How close is close enough. A plan within the first part of its bound is as good as the bound; within the second no
# linear program, and no case, is worth its time. On the small cases of the benchmark the first way is within it, so
# that switching off all programs changes nothing there. A placement without cases has to be within the second, too.
CLOSE, FAIR = 1e-5, 1e-4
# What cases have brought this close isn't brought closer by programs that know no cases.
CLOSE_BY_CASES = 5e-4

# Flows: only topics of so few rows are likely to have newcomers that can't be given back; beyond this part of the rows
# in full, the full network is as quick. On large clusters the condensed
# network gives the same plans in a quarter of the time.
FEW_ROWS, MOST_IN_FULL = 64, 0.5
# So many prices that brokers have are condensed, too; single prices of all brokers aren't.
PRICE_CLASSES = 4
# How often topics are moved from the condensed network to the full one before all of them are. On 90 brokers no topic
# had to be; on 150 brokers and 336,000 rows six rounds of 25 s still left some, and the full network takes as long as
# four of them: beyond so many rows it comes first.
CONDENSED_ROUNDS, CONDENSED_ROWS = 3, 200_000
# Flows solved for fewer partitions touched, after the first: on expand-small they leave 93 that could stay, of 127;
# twenty more leave 89, and 88 are the least. A partition's charge is divided by so many replicas at most.
TOUCHED_FLOWS, TOUCHED_SHARES = 6, 6
# Beyond so many arcs of rising cost into one broker, each is for several replicas.
ARRIVAL_STEPS = 1_000
# Ties are broken at every pair of brokers up to so many rows × brokers, in so many rounds; the second finds next to
# nothing.
TIE_CELLS, TIE_ROUNDS = 2_000_000, 2
# Integer programs for the second objectives of the balance that was asked for: arcs that may be free, and nodes of the
# branches. On the small cases of the benchmark they take 0.01 s and end at their first node; on expand-small 88
# partitions are touched that could stay, not 93.
PROGRAM_ARCS, PROGRAM_NODES = 4_000, 20
# New partitions are levelled up to so many rows × brokers.
LEVEL_CELLS = 1_500_000

# Exchanges: partners tried at once, those with the most room before all others: the same moves in a third of the time.
FIRST_PARTNERS = 16
# A broker is far outside at so many times what an exchange shifts: then further exchanges are made without a new look.
FAR_OUTSIDE = 10
# Rows of other topics that are tried against each other.
SAMPLED_ROWS = 200
# Rounds of polishing: without any +0.47 % bytes on expand-mid with disks within 2 %, +0.002 % on no-racks.
POLISH_ROUNDS = 8
# In large placements so many exchanges of two brokers are made at once, without a new look. With the limit below,
# polishing expand-big with disks within 5 % takes a third of the time, and moves no more than 1e-7 more bytes.
EXCHANGES_AT_ONCE = 32
# A large placement that is within this part of its bound isn't polished further: the last rounds look at every pair of
# brokers again, for less than a millionth of the bytes.
POLISHED = 1e-6
# Beyond so many rows × brokers exchanges are left as soon as one broker can't be helped, for a linear program's prices:
# 200 unlike brokers with 36,000 replicas 135 → 52 s, gap 0.085 → 0.061 %; with heavy-tailed sizes 38 → 20 s,
# 1.3 → 0.9 %.
LARGE_PLACEMENT = 100_000
# Without prices only loads that are nearly even are mended: this part of all bytes may be outside the windows.
NEARLY_EVEN = 0.02

# Starts of windows: beyond so many rows × brokers bringing bytes into their windows takes too long to be done more than
# once; up to the few, starts are compared by all that can be done at each of them.
START_COLUMNS, FEW_START_COLUMNS = 100_000, 100
# So many starts of a window are looked at one by one.
MOST_STARTS = 8
# What the cheapest start and the relaxed placement may use of the work; other starts, for the bound, half of the rest.
SHARE_OF_BEST_START, SHARE_OF_OTHER_STARTS = 0.5, 0.5

# Prices of loads: programs of more columns than the first go to a first-order method, beyond the second to none. Capped
# disks without any linear program: gap 0.0001 → 81 %, bytes +0.03 %. 4,000 partitions with heavy tails on 200 brokers
# without these prices: gap 0.6 → 33 %, bytes +0.18 %; on small cases nothing.
EXACT_PRICE_COLUMNS, PRICE_COLUMNS = 60_000, 2_000_000
# Where all racks would be too many columns, they are taken together in so many, up to so many columns: 5,200 partitions
# on 400 brokers with a rack each, gap 0.144 → 0.019 % for 13 s. Not before: 6,000 on 300 would move 0.05 % more bytes.
PRICE_RACKS, FEW_RACKS_COLUMNS = 10, 250_000
# First-order prices are this close, relative to the objective, or stop after so many steps.
PRICE_TOLERANCE, PRICE_ITERATIONS = 1e-4, 20_000

# The fractional program: rows × brokers that it is solved for, how often, with ever more rows settled, and for how many
# columns in all. Without cases, its rounding is worth 2.3 to 3.5 % bytes where sizes have heavy tails; with them, 2.7
# and 12.5 % on two of the small clusters of `--corners`, nothing on the others.
FRACTION_COLUMNS, FRACTION_ROUNDS, FRACTION_COLUMNS_IN_ALL = 100_000, 8, 200_000
# A program solved from nothing takes as long as so many that go on from another one's end.
FROM_NOTHING = 10

# Where a small cluster's plan is further above its bound than the first: nodes of an integer program, the work that has
# to be left for each of its columns, and then programs of cases. With FAIR for the first, two of the examples take 1.3
# and 1.9 times as long, and copy no less. Of 10 clusters with 17 partitions on 4 to 8 brokers whose windows of one or
# two loads hold, six copy 6 to 52 % less. The gaps that are told are 0 % in 7 and 26 % at most, instead of 16 % in the
# median and 61 %; the plan takes 1 to 5 s, not 1 to 2 s.
WHOLE_GAP, WHOLE_NODES, WHOLE_WORTH, WHOLE_SOLVES = 0.01, 300, 8_000, 4_000

# Cases, worth 0.14 to 1.2 % bytes where sizes have heavy tails (skewed-sizes, sigma 3 and 4), and a gap of 0.0006
# instead of 0.23 %: columns of a program, programs of one part, and decisions of one case.
CASE_COLUMNS, CASE_SOLVES, CASE_DECISIONS = 60_000, 400, 200
# Rows as large as the narrowest window come first, at most so many; then those of half the size, so often halved.
CASE_ROWS, CASE_HALVINGS = 200, 4
# Replicas tried before one is chosen to branch on.
BRANCHES_TRIED = 8
# A placement is made by deciding so many rows more, one by one, each at the best of so many brokers.
DIVE_ROWS, DIVE_BROKERS = 200, 3
# Cases may use up this part of the work: where windows can't all hold the rest is needed. Of that, the splitting may
# use the first part, each placement the second of what is left then.
SHARE_OF_CASES, SHARE_OF_SPLITTING, SHARE_OF_PLACEMENT = 0.8, 0.6, 0.4
# This part of the work is for windows that can't all hold, and of that one for the least outside.
SHARE_OF_RELAXED, SHARE_OF_CLOSEST = 0.2, 0.5


class Effort:
    """An account of work. A part of it is an account, too; what a part leaves stays with the whole."""

    def __init__(self, columns: int, whole: "Effort | None" = None) -> None:
        self._left, self._whole = columns, whole

    @classmethod
    def of(cls, worth: Worth, columns: int) -> Self:
        """The account of a solve whose programs have so many columns."""
        return cls(max(worth.columns, worth.programs * columns))

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

    def part(self, share: float) -> "Effort":
        """A share of what is left."""
        return Effort(int(max(self.left, 0) * share), self)


# `apart`: ways to split the brokers among topics that share none, up to which all are compared; 15 brokers in two
# sides. How many of them are solved, the most promising first, at least and at most, with so many partitions in all:
# what isn't solved may copy less, and the plan says so. And where there are more ways, how often the likely one is
# improved.
MOST_SPLITS, SPLIT_IMPROVEMENTS = 40_000, 200
SPLITS_SOLVED, SPLIT_PARTITIONS = (3, 64), 10_000

# `together`: partitions on a broker with which one that is to come there may change places, besides those of its
# topic: those first that copy least for it. On 49,478 partitions, 7,000 of them to be brought together, it takes 6 s.
COMMON_LEADER_PARTNERS = 64
