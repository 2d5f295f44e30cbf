"""A cluster's load over weeks: samples and counters of metrics come in, a profile of each partition goes out."""
