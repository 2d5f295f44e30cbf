"""The values that the plan is made of, each with its unit and what it may be."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from planner.model.cluster import LARGEST_ID


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A JSON object of the plan; `None` by default means that its key is left out.

    Sections hold no cycles, so Python's collector need not look at them: a million replicas are read in 0.5 s, not 1.2.
    """


def doc(text: str) -> Meta:
    """What a field holds, for readers of the code and of the JSON Schema."""
    return Meta(description=text)


# Kafka's numbers, and all sums of bytes, are 64-bit; ids of brokers and partitions are 32-bit.
LARGEST = 2**63 - 1

Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
Whole = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Number = Whole | Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
NotNegative = Count | Annotated[float, Meta(ge=0, le=LARGEST)]

Name = Annotated[str, Meta(min_length=1)]
Sentence = Annotated[str, Meta(description="One sentence.")]
TopicName = Annotated[str, Meta(min_length=1, description="Topic name.")]
PartitionId = Annotated[int, Meta(ge=0, le=LARGEST_ID, description="Partition id.")]
BrokerId = Annotated[int, Meta(ge=0, le=LARGEST_ID, description="Broker id.")]
# JSON's keys are text.
BrokerKey = Annotated[str, Meta(pattern="^[0-9]+$", description="Broker id.")]

Replicas = Annotated[
    tuple[BrokerId, ...],
    Meta(min_length=1, extra_json_schema={"uniqueItems": True}, description="Broker ids, preferred leader first."),
]
LogDirPath = Annotated[str, Meta(min_length=1, description="Absolute path, or any.")]
LogDirPaths = Annotated[
    tuple[LogDirPath, ...],
    Meta(min_length=1, description="Log dirs, parallel to a replica list; any where Kafka isn't told one."),
]
TopicConfig = Mapping[str, str]

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
UtcTime = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
Percentage = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?%$")]
Window = Annotated[
    str, Meta(pattern=r"^(none|([0-9]+(\.[0-9]+)?% of the way to )?([0-9]+|[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?%))$")
]
WindowName = Annotated[str, Meta(description="Name of a window, as in balance.asked.")]
