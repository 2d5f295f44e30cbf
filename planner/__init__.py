"""A plan generator for Apache Kafka cluster changes with a what-if engine."""

__version__ = "0.1.0"
