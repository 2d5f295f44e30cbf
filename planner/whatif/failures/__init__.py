"""What breaks when brokers or racks fail: today, at each batch of a plan, and after it."""
