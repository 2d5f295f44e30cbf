"""The benchmark: neutral cases, what is measured of their plans, and the tables that say it."""
