"""The options of the module `kafka_reassign` in Ansible's format. The module's DOCUMENTATION describes them."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations


def argument_spec():
    """The options for AnsibleModule. Tests check that they are the options of DOCUMENTATION."""
    words = {"type": "list", "elements": "str", "default": []}
    numbers = {"type": "list", "elements": "int", "default": []}
    text = {"type": "str", "default": ""}
    by_name = {"type": "dict", "default": {}}
    no = {"type": "bool", "default": False}
    asks = "check look start elect reached measure leaders new refusing begin throttle restore cordon summary note"
    names = "name target origin plan_dir stop_file throttle_file journal_dir journal plan_id command_config"
    flags = "before verify measure although_moving allow_under_replicated keeps_replication_factor with_log_dirs"
    return {
        "ask": {"type": "str", "choices": asks.split(), "default": "look"},
        "tools": {"type": "dict", "required": True},
        **dict.fromkeys(names.split(), text),
        **dict.fromkeys(flags.split(), no),
        **dict.fromkeys(("racks", "planned_log_dirs", "disk_limits", "lag_limits"), by_name),
        "look_at_cluster": {"type": "bool", "default": True},
        **dict.fromkeys(("expected_brokers", "leaving_brokers", "down_brokers"), numbers),
        **dict.fromkeys(("known", "command", "execute_options"), words),
        "throttle_bytes_per_sec": {"type": "int", "default": 0},
        "entries": {"type": "list", "elements": "dict", "default": []},
        "direction": {"type": "str", "default": "apply"},
    }
