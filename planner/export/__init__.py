"""Writes the files of a plan that other tools read (Kafka's JSON, the Ansible folder, Terraform), and its folder.

Input: a plan document. Output: bytes by relative path, the same each time; a folder is written all or nothing.
Imports `plan`.
"""
