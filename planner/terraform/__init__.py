"""Terraform's side: topics from its plans, the external data source."""
