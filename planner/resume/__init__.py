"""The rest of a plan that was interrupted."""
