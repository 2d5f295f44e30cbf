"""How much work a solve may do: all limits of the strategies, and an account of the linear programs that it solves.

Work is counted, the same on every machine: with a clock, a busy machine would find another plan than an idle one.

Each comment says what is limited and what that buys. Percentages of bytes are what plans move more without the part, as
`python -m benchmarks --ablate` shows; seconds are of two cores. Limits without a figure weren't measured.
"""

from typing import NamedTuple, Self


class WorkLimit(NamedTuple):
    """The work of a solve: columns of programs, or a number of programs with all its columns if that is more; and flows
    for plans of whole topics.
    """

    columns: int
    programs: int
    topic_flows: int = 0


# The work for the balance that was asked for, for each other balance that a sweep tries, and for each of thousands of
# clusters that could be bought. On the clusters of examples/size.yaml the last takes a third of the time of the second,
# for 0.02 % more bytes at most and a bound that proves up to 5 % less.
FULL_WORK, LITTLE_WORK, NO_WORK = WorkLimit(12_000_000, 600, 15), WorkLimit(1_000_000, 600), WorkLimit(0, 0)
# A program counts as _TIMES its columns more than it has, but as no more than _MORE columns more.
_TIMES, _MORE = 10, 5_000

# How close to its bound a plan must be. Within the first part, it is as good as the bound; within the second, no linear
# program and no case is worth its time. On the small cases of the benchmark, the first attempt is within it, so that
# switching off all programs changes nothing there. A placement without cases must be within the second, too.
CLOSE, FAIR = 1e-5, 1e-4
# A plan that cases have brought this close isn't improved by programs without cases.
CLOSE_BY_CASES = 5e-4

# Flows: only topics of so few rows are likely to have entering replicas that fit no row.
FEW_ROWS = 64
# On large clusters, the condensed network gives the same plans in a quarter of the full network's time. Each round lays
# out more topics in full, and is tried only if they have at most this part of the rows. With 0.44 of 58,000 rows, a
# round took 0.6 of the full network's time, and eleven rounds left topics that fit no row. Decommission takes five
# rounds, with up to 0.1 of 960 rows; on 90 brokers the first was enough.
MOST_IN_FULL = (0.5, 0.5, 0.25, 0.125, 0.125)
# The condensed network allows so many different prices of brokers, but not a separate price for each broker.
PRICE_CLASSES = 4
# On 150 brokers and 336,000 rows, six rounds of the condensed network with prices took 25 s each and still left some
# topics, and the full network takes as long as four rounds: beyond so many rows it comes first.
CONDENSED_ROWS = 200_000
# Flows solved for fewer touched partitions, after the first: on expand-small they leave 93 touched that could stay, of
# 127; twenty more leave 89, and 88 are the least. Up to so many replicas share a partition's charge exactly.
TOUCHED_FLOWS, TOUCHED_SHARES = 6, 6
# If a broker needs more arcs of rising cost than this, each arc is for several replicas.
ARRIVAL_STEPS = 1_000
# Ties are broken at every pair of brokers up to so many rows × brokers, in so many rounds; the second finds next to
# nothing.
TIE_CELLS, TIE_ROUNDS = 2_000_000, 2
# Integer programs for the second objectives of the balance that was asked for: the most free arcs, and the most nodes
# of branch and bound. On the small cases of the benchmark they take 0.01 s and end at their first node; on expand-small
# 88 partitions that could stay are touched, not 93.
PROGRAM_ARCS, PROGRAM_NODES = 4_000, 20
# New partitions are levelled up to so many rows × brokers.
LEVEL_CELLS = 1_500_000
# Flows of new partitions of several sizes that fill no disk above its limit, and as many rows × brokers in all as are
# levelled at once. With one size, one flow is enough.
DISK_FLOWS = 100

# Exchanges: partners tried at once, those with the most room first: the same moves in a third of the time.
FIRST_PARTNERS = 16
# While a broker is outside by so many times what an exchange shifts, more exchanges are made without a new search.
FAR_OUTSIDE = 10
# Rows on each side of an exchange across topics that are tried against each other; fewer in large placements: 58,371
# partitions on 122 brokers get into their windows in a fifth of the time, expand-big at a peer's balance in 52 s, not
# 73 s, for 1e-7 more bytes; 17,858 on 60 brokers copy 7e-5 more.
SAMPLED_ROWS, SAMPLED_ROWS_OF_LARGE = 200, 50
# Rounds of polishing: without any, +0.47 % bytes on expand-mid with disks within 2 %, +0.002 % on no-racks.
POLISH_ROUNDS = 8
# In large placements, so many exchanges of two brokers are made at once, without a new search. With the limit below,
# polishing expand-big with disks within 5 % takes a third of the time, and moves at most 1e-7 more bytes.
EXCHANGES_AT_ONCE = 32
# A large placement that is within this part of its bound isn't polished further: the last rounds look at every pair of
# brokers again, for less than a millionth of the bytes.
POLISHED = 1e-6
# Beyond so many rows × brokers, exchanges stop at a broker that can't be helped, and a linear program's prices follow:
# 200 unlike brokers with 36,000 replicas 135 → 52 s, gap 0.085 → 0.061 %; with heavy-tailed sizes 38 → 20 s and 1.3 →
# 0.9 %.
LARGE_PLACEMENT = 100_000
# Without prices, only loads that are nearly even are repaired: this part of all bytes may be outside the windows.
NEARLY_EVEN = 0.02

# Starts of windows: beyond so many rows × brokers, bringing bytes into their windows takes too long to be done more
# than once; up to the few, starts are compared with all work done at each of them.
START_COLUMNS, FEW_START_COLUMNS = 100_000, 100
# Rounds of starts at the prices of the last plan; on larger clusters one, and only for the balance asked for. Then the
# bound gets prices for each start. Both take some flows in full, and are left out beyond so many rows × brokers. With
# topics that may differ by 3, skewed-sizes moves 1.8 % more without, and the gap is 29 %; with one round 0.2 %. 90
# brokers with 51,000 partitions whose topics may differ by 2: 6 → 55 s, gap 27 → 0.0002 %.
START_ROUNDS, AT_STARTS = 3, 6_000_000
# The program of shares and starts: the most rows × brokers for its prices, and for whole starts; its nodes, and the gap
# at which it ends. Of ten clusters of 100 to 1,200 partitions with disks within 2 % or skewed sizes, whose topics may
# differ by 2, gaps of 1.5 to 13 % become 0.04 to 7 % for a tenth more time. Whole starts copy up to 0.9 % less on
# clusters of 125 partitions; with up to 25,000 columns 0.14 % less, for twice the time.
START_PROGRAM_COLUMNS, START_WHOLE_COLUMNS, START_NODES, START_CLOSE = 100_000, 5_000, 10, 1e-3
# Up to so many starts of a window are examined one by one.
MOST_STARTS = 8
# Shares of the work left: for the cheapest start and the relaxed placement; for each other start, for the bound.
SHARE_OF_BEST_START, SHARE_OF_OTHER_STARTS = 0.5, 0.5

# Prices of loads: programs of more columns than the first go to a first-order method, beyond the second they aren't
# solved. Capped disks without any linear program: gap 0.0001 → 81 %, bytes +0.03 %. 4,000 partitions with heavy tails
# on 200 brokers without these prices: gap 0.6 → 33 %, bytes +0.18 %; on small cases nothing.
EXACT_PRICE_COLUMNS, PRICE_COLUMNS = 60_000, 2_000_000
# If all racks are too many columns, they are merged into so many racks, up to so many columns: 5,200 partitions on 400
# brokers with a rack each, gap 0.144 → 0.019 % for 13 s. Not before: 6,000 on 300 would move 0.05 % more bytes.
PRICE_RACKS, FEW_RACKS_COLUMNS = 10, 250_000
# First-order prices are this close, relative to the objective, or stop after so many steps, or so many steps × entries
# of the program. 58,371 partitions on 122 brokers take 56 s then, not 234 s, and the bound is 0.09 % lower.
PRICE_TOLERANCE, PRICE_ITERATIONS, PRICE_WORK = 1e-4, 20_000, 8_000_000_000

# The fractional program: the most rows × brokers, the most solves, with ever more rows settled, and the most columns in
# all. Without cases, its rounding saves 2.3 to 3.5 % bytes if sizes have heavy tails; with them, 2.7 and 12.5 % on two
# of the small clusters of `--corners`, nothing on the others.
FRACTION_COLUMNS, FRACTION_ROUNDS, FRACTION_COLUMNS_IN_ALL = 100_000, 8, 200_000
# A program solved from nothing takes as long as so many that continue from another one's basis.
FROM_NOTHING = 10

# Plans of whole topics: the most rows × brokers, and the most plans at first; flows at shaken prices, and how far these
# are from the best; the part of the mixed topics that is settled at once, and flows for the rest then. On the clusters
# "skewed" of `--corners` they save 6 to 8 % of the bytes, for three to six times the time; the gap is 0.7 %, not 12 %.
# Thousands of topics are nearer to the bound without them: 6,000 on 20 brokers 0.2 %, and would take two minutes.
TOPIC_COLUMNS, TOPIC_PLANS, TOPIC_FLOWS_SHAKEN, SHAKEN_BY = 600_000, 20_000, 6, 0.035
TOPICS_SETTLED, TOPIC_FLOWS_LEFT = 0.25, 2

# If a small cluster's plan is further above its bound than the first: nodes of an integer program, the work that must
# be left for each of its columns, and then programs of cases. With FAIR for the first, two of the examples take 1.3 and
# 1.9 times as long, and copy no less. Of 10 clusters with 17 partitions on 4 to 8 brokers whose windows of one or two
# loads hold, six copy 6 to 52 % less. The stated gaps are 0 % in 7 and 26 % at most, instead of 16 % in the median and
# 61 % at most; the plan takes 1 to 5 s, not 1 to 2 s.
WHOLE_GAP, WHOLE_NODES, WHOLE_WORTH, WHOLE_SOLVES = 0.01, 300, 8_000, 4_000
# If the chosen plan is still further above its bound than that: the work for cases of just this plan's windows, starts
# and excess. Of 60 clusters of 10 to 60 partitions with skewed sizes on 4 to 12 brokers, twelve told gaps above 1 %:
# 88 → 8, 56 → 6, 8 → 0, 4 → 0.7, 1.2 → 0.02 %, the others less, for 3 s at most.
PROOF_COLUMNS = 3_000_000

# Cases save 0.14 to 1.2 % bytes if sizes have heavy tails (skewed-sizes, sigma 3 and 4), with a gap of 0.0006 instead
# of 0.23 %. The most columns of a program, programs of one part, and decisions of one case.
CASE_COLUMNS, CASE_SOLVES, CASE_DECISIONS = 60_000, 400, 200
# Rows as large as the narrowest window come first, then those of half the size, halved so often; at most so many rows.
CASE_ROWS, CASE_HALVINGS = 200, 4
# Rows of this part of the narrowest window also get cases, if a plan without them isn't this close to its bound. Of 32
# clusters of 140 to 1,050 partitions on 5 to 27 brokers, five had such plans: they copy up to 2.5 % less, gaps of 0.2
# to 2.5 % become 0.005 to 0.3 %, for up to 3 s.
SMALL_CASES, SMALL_CASES_GAP = 0.5**CASE_HALVINGS, 1e-3
# If the plan for the balance that was asked for is still this far above its bound, integer programs place the replicas
# of a few brokers anew: the fewest and the most brokers of each, and the most of all; its most columns and nodes, and
# how close to its optimum it stops; and how many are solved, in all and in vain, for at most this share of the work
# left. 224 partitions on 40 brokers copy 24.65 → 23.69 TB for 3 s; 63 on 17 brokers 4.24 → 4.05 TB, gap 5.1 → 0.7 %,
# for 7 s; 205 on 25 brokers 0.4 % less for 1 s; 45 and 85 on 11 and 14 brokers 0 and 0.14 % less for 1 and 3 s. With up
# to eight brokers there, too, these took 11 s.
NEIGHBORHOOD_GAP = 5e-3
FEW_BROKERS, MOST_OF_BROKERS = (3, 8), 0.4
NEIGHBORHOOD_COLUMNS, NEIGHBORHOOD_NODES, NEIGHBORHOOD_CLOSE = 500, 10, 1e-3
NEIGHBORHOODS, NEIGHBORHOODS_IN_VAIN, SHARE_OF_NEIGHBORHOODS = 200, 20, 0.5
# Replicas tried before one is chosen to branch on.
BRANCHES_TRIED = 8
# A placement is made by deciding so many more rows, one by one, each at the best of so many brokers.
DIVE_ROWS, DIVE_BROKERS = 200, 3
# Cases may use SHARE_OF_CASES of the work; the rest is needed if windows can't all hold. Of that, splitting may use
# SHARE_OF_SPLITTING, and each placement SHARE_OF_PLACEMENT of what is left then.
SHARE_OF_CASES, SHARE_OF_SPLITTING, SHARE_OF_PLACEMENT = 0.8, 0.6, 0.4
# If windows can't all hold: the part of the work left for coming as close to them as possible, and the part of that for
# cases; then the part of the whole work, once more, for the fewest bytes of plans as close. 510 partitions on 20 unlike
# brokers with sizes of heavy tails: 25.4 → 24.1 TB, gap 6.6 → 0.1 %, 5 → 10 s.
SHARE_OF_RELAXED, SHARE_OF_CLOSEST, SHARE_OF_AS_CLOSE = 0.2, 0.5, 0.5


class Effort:
    """An account of work. A part of it is an account, too; work that a part doesn't use stays with the whole."""

    def __init__(self, columns: int, total: "Effort | None" = None, topic_flows: int = 0) -> None:
        self._columns, self._left, self._total, self.topic_flows = columns, columns, total, topic_flows

    @classmethod
    def of(cls, work: WorkLimit, columns: int) -> Self:
        """The account of a solve whose programs have so many columns."""
        return cls(max(work.columns, work.programs * columns), None, work.topic_flows)

    @property
    def left(self) -> int:
        """Columns that may still be solved."""
        return self._left if self._total is None else min(self._left, self._total.left)

    @property
    def spent(self) -> bool:
        """True if nothing is left."""
        return self.left <= 0

    def spend(self, columns: int) -> None:
        """Charge for a solved program of so many columns."""
        self._left -= columns + min(_TIMES * columns, _MORE)
        if self._total is not None:
            self._total.spend(columns)

    def renewed(self) -> "Effort":
        """An account of as much work as this one had at first."""
        return Effort(self._columns, None, self.topic_flows)

    def part(self, share: float) -> "Effort":
        """An account of a share of the work that is left."""
        return Effort(int(max(self.left, 0) * share), self, self.topic_flows)


# `apart`: the most ways to split the brokers among topics that share none at which all are compared (15 brokers in two
# sides); with more ways, how often the likely one is improved. How many are solved, the most promising first, at least
# and at most, with so many partitions in all: an unsolved way may copy less, and the plan says so.
MOST_SPLITS, SPLIT_IMPROVEMENTS = 40_000, 200
SPLITS_SOLVED, SPLIT_PARTITIONS = (3, 64), 10_000

# `together`: partitions on a broker, besides those of its topic, with which an arriving one may exchange brokers; those
# that copy least come first. On 49,478 partitions, 7,000 of them to be brought together, it takes 6 s.
COMMON_LEADER_PARTNERS = 64
# Programs of common brokers, for the balance that was asked for and for others: the most rows × brokers; up to how many
# an integer program decides everything, and not only what the linear program splits; its nodes; and how close to its
# optimum it stops. Without them, clusters of 125 to 1,200 partitions with one to five groups of two topics move 2 to
# 14 % more, and the gap is up to 32 %; with them, 0.6 %. To decide everything for each of 50 ways to split brokers
# (`apart`) takes 45 s, not 8 s, and finds the same plan.
TOGETHER_COLUMNS, TOGETHER_WHOLE, TOGETHER_NODES, TOGETHER_CLOSE = (
    (250_000, 12_000),
    (12_000, 0),
    (300, 1),
    (FAIR, 2e-3),
)
# Up to so many columns the linear program is solved by the simplex method, with at most so many steps for each row
# (five clusters took 0.5 to 0.7), beyond by an interior point method: 257,000 columns 50 → 13 s, 114,000 2 → 7 s.
TOGETHER_SIMPLEX_COLUMNS, TOGETHER_STEPS = 150_000, 5
# Bounds know of common brokers up to so many rows of slots × brokers²: more takes over a second to compute.
# With ranks of leaders, Python's integers are sorted, which takes 20 times as long.
TOGETHER_CELLS, TOGETHER_RANKS = 10_000_000, 20

# `demote_brokers`: the smallest partitions with which one that is only on demoted brokers may exchange brokers, if none
# of its topic can.
EXCHANGE_PARTNERS = 2_000
