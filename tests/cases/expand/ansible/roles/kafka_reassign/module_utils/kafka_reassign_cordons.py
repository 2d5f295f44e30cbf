"""Cordons the brokers that leave, and removes these cordons on a rollback: `cordoned.log.dirs` (KIP-1066).

Kafka 4.3 and newer put no new topic or partition on a cordoned broker. Reassignments aren't affected.
"""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

from ansible.module_utils import kafka_reassign_output as output
from ansible.module_utils.kafka_reassign_cluster import ToolError, alteration, shortened
from ansible.module_utils.kafka_reassign_journal import folder_of, read_json, replace_json

# Kafka 4.3 says this if the cluster's metadata.version is still that of an older Kafka.
_TOO_OLD = "requires metadata.version"
_NEEDS = "which needs Kafka 4.3 and its metadata.version. New topics may get replicas there while the plan is applied."


def cordon(cluster):
    """Cordon the brokers that leave or, on a rollback, remove this plan's cordons. Returns `changed`, and sentences."""
    cordons = Cordons(cluster)
    return cordons.lift() if cluster.given["direction"] == "rollback" else cordons.put()


class Cordons:
    """The cordons of a plan's brokers, and a record of the settings from before the plan's first run.

    The record is a file on the admin host. It has the brokers that a run of this plan has cordoned, each with the
    value that was set on the broker itself before, or null.
    """

    def __init__(self, cluster):
        self.cluster = cluster
        self.given = cluster.given
        self.changes = not cluster.module.check_mode
        folder = folder_of(self.given["journal_dir"], make=self.changes)
        self.path = folder / f"cordons-{self.given['plan_id'][:12]}.json"
        self.record = read_json(self.path)

    def put(self):
        """Cordon the brokers that leave. Returns `changed`, and sentences on brokers cordoned and not cordoned."""
        done, old = [], []
        for broker in map(str, self.given["leaving_brokers"]):
            now, own = self.setting(broker)
            if now == output.ALL:
                continue
            if now is not None and self.cordoned(broker, own):
                done.append(broker)
            else:
                old.append(broker)
        which = ("is" if len(done) == 1 else "are") if self.changes else "would be"
        said = [f"{_named(done)} {which} cordoned: no new topic gets a replica there."] if done else []
        said += [f"{_named(old)} can't be cordoned, {_NEEDS}"] if old else []
        return {"changed": bool(done), "said": said}

    def cordoned(self, broker, own):
        """Cordon a broker whose own setting is `own`. False if the cluster's metadata.version is too old for it."""
        if not self.changes:
            return True
        # An earlier run may have been killed after it wrote the record and before it changed the setting.
        self.record.setdefault(broker, own)
        self.save()
        code, out, err = self.alter(broker, own, output.ALL)
        if code == 0:
            return True
        del self.record[broker]
        self.save()
        if _TOO_OLD in out + err:
            return False
        raise ToolError(
            f"broker {broker} couldn't be cordoned; -e kafka_reassign_cordon=false skips it: {shortened(err + out)}"
        )

    def lift(self):
        """Restore the settings of the brokers that runs of this plan cordoned. Returns `changed`, and sentences."""
        done, said, leaving = [], [], {str(each) for each in self.given["leaving_brokers"]}
        kept = [each for each in sorted(leaving - self.record.keys(), key=int) if self.setting(each)[1] == output.ALL]
        for broker in sorted(self.record.keys() & leaving, key=int):
            before, (_, own) = self.record[broker], self.setting(broker)
            if own == output.ALL:
                done.append(broker)
                code, out, err = self.alter(broker, own, before) if self.changes else (0, "", "")
                if code != 0:
                    raise ToolError(f"the cordon of broker {broker} couldn't be taken off: {shortened(err + out)}")
            elif own != before:
                said.append(
                    f"Somebody else has set {output.CORDONED}={own or ''} on broker {broker} meanwhile, which stays."
                )
            del self.record[broker]
            if self.changes:
                self.save()
        which = ("is" if len(done) == 1 else "are") if self.changes else "would be"
        said += [f"{_named(done)} {which} no longer cordoned by this plan."] if done else []
        if kept:
            said.append(
                f"Still cordoned, by no run of this plan on this host: {_named(kept).lower()}. kafka-configs.sh "
                f"--alter --delete-config {output.CORDONED} lets new topics there."
            )
        return {"changed": bool(done), "said": said}

    def setting(self, broker):
        """The cordon in force on a broker, None if its Kafka has no such setting; and the cordon set on it, or None."""
        options = ("--describe", "--entity-type", "brokers", "--entity-name", broker, "--all")
        return output.cordon(self.cluster.required("configs", *options))

    def alter(self, broker, now, wanted):
        """Change a broker's own setting; `wanted` None deletes it. Returns the tool's exit code, stdout and stderr."""
        values = [{} if each is None else {output.CORDONED: each} for each in (now, wanted)]
        options = ["--alter", "--entity-type", "brokers", "--entity-name", broker, *alteration(*values)]
        return self.cluster.run([*self.given["tools"]["configs"], *options])

    def save(self):
        """Replace the record, or remove it if nothing is left in it."""
        if self.record:
            replace_json(self.path, self.record)
        elif self.path.exists():
            self.path.unlink()


def _named(brokers):
    return f"{'Broker' if len(brokers) == 1 else 'Brokers'} {', '.join(brokers)}"
