"""Windows on bytes and traffic, which no flow has: prices, linear programs, branch and bound, local search."""
