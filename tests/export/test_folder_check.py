"""A folder beside the digests of what belongs there."""

from __future__ import annotations

from planner.export.folder_check import FolderCheck, FolderEntry, held

MADE = {"plan.json": "1", "ansible/inventory/hosts.yml": "2", "terraform/kafka_topics.auto.tfvars.json": "3"}


def of(digests: dict[str, str]) -> dict[str, FolderEntry]:
    """Plain files."""
    return {path: FolderEntry("file", False, sha256) for path, sha256 in digests.items()}


def test_what_is_as_it_was_made_is_counted() -> None:
    """No difference, nothing of the operator's."""
    assert FolderCheck(files=3) == held(MADE, of(MADE))


def test_the_operators_files_do_not_count_as_differences() -> None:
    """Edited, added, or taken away; the plan's own file beside Terraform's is none of them."""
    now = of(MADE | {"ansible/inventory/hosts.yml": "9", "terraform/main.tf": "4"})
    now |= of({"terraform/kafka_topics.auto.tfvars.json": "5"})
    found = held(MADE, now)

    assert ["terraform/kafka_topics.auto.tfvars.json"] == [each.path for each in found.differences]
    assert ["ansible/inventory/hosts.yml", "terraform/main.tf"] == [each.path for each in found.own]
    gone = held(MADE, of({path: sha256 for path, sha256 in MADE.items() if "hosts" not in path}))
    assert ((), ["is missing"]) == (gone.differences, [each.what for each in gone.own])


def test_a_link_above_the_plans_files_is_never_the_operators() -> None:
    """Its files are told once, as the link; the inventory's folder may be one."""
    now = {"plan.json": FolderEntry("file", False, "1"), "terraform": FolderEntry("link", False, "8")}
    found = held(MADE, now | {"ansible/inventory": FolderEntry("link", False, "9")})

    assert ["terraform"] == [each.path for each in found.differences]
    assert ["ansible/inventory"] == [each.path for each in found.own]


def test_a_folder_in_the_place_of_a_file_is_found() -> None:
    """By what it holds, and by the file that is missing."""
    now = of({path: sha256 for path, sha256 in MADE.items() if path != "plan.json"} | {"plan.json/x": "1"})

    assert ["plan.json is missing", "plan.json/x isn't part of the plan"] == list(map(str, held(MADE, now).differences))
