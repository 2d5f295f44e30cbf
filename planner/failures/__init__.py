"""What breaks when brokers or racks fail: scenarios, outcomes, tables."""
