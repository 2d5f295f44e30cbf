"""Meets windows on bytes and traffic, which flows can't express: prices, linear programs, branch and bound, search."""
