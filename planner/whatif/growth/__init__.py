"""How long a cluster lasts as its topics grow."""
