"""The commands: what is typed, what is printed, which exit code it gives."""
