"""From a plan to the files that others read: Kafka's JSON, the Ansible folder, Terraform; and the folder itself.

Comes in: a plan document. Goes out: bytes by relative path, the same each time; a folder is written all or nothing.
Imports `plan`.
"""
