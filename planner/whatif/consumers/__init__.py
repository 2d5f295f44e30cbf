"""Consumer groups: Kafka's assignors, what happens to a group, and what that moves."""
