"""plan.json as report.md and report.html."""
