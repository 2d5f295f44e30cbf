"""Which of Kafka's own placements explains an assignment."""
