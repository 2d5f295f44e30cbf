"""A plan's changes cut into batches, and what each of them costs."""
