"""Reads a running cluster's state with kafka-python's client (the extra `live`).

Reads the same as Kafka's own tools print, without running them: topics with replicas, leaders and ISRs, brokers with
racks, topics' own and inherited configurations, sizes in the brokers' log dirs, and running reassignments. The client's
settings come from a Java client's properties file, like that of `--command-config` of Kafka's tools.

Sources: `java.util.Properties.load`, `org.apache.kafka.common.config.SslConfigs` and `SaslConfigs`, and kafka-python's
`KafkaAdminClient`.
"""

import logging
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from planner.inputs.importers.brokers_and_configs import CORDONED, cordoned
from planner.inputs.importers.state_parts import (
    AssignmentEntry,
    Rank,
    RegisteredBroker,
    RunningReassignment,
    StatePart,
    largest_sizes,
)
from planner.inputs.yaml_source import decode
from planner.model import file_reading
from planner.model.cluster import INHERITED, MIN_INSYNC, OF_TOPIC, Config, Partition, PartitionKey, largest_min_insync
from planner.model.errors import Finding, Place, SetupError, SpecError

TITLE = "the live cluster"
TIMEOUT_MS = 30_000
_AT_ONCE = 500
# The same as in the YAML's schema. A client would take port 9092 for an address without one.
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_SERVER = re.compile(
    rf"(\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]|{_LABEL}(\.{_LABEL})*\.?):"
    r"(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
)

Resource = Callable[[Literal["topic", "broker"], str], Any]


def live_parts(bootstrap_servers: str | None, command_config: Path | None) -> list[StatePart]:
    """The running cluster's state, as the two options of a command name it; empty without them.

    SetupError like `read_live`, and for a `command_config` alone.
    """
    if command_config is not None and bootstrap_servers is None:
        raise SetupError("--command-config is for --bootstrap-servers; allowed: both, or leave it out")
    if bootstrap_servers is None:
        return []
    settings: Settings = {}
    if command_config is not None:
        data = file_reading.read_bytes(command_config, file_reading.SHORT)
        settings = kafka_python_settings(decode(data, command_config.as_posix()), command_config.as_posix())
    return [read_live(bootstrap_servers, settings)]


def read_live(bootstrap_servers: str, settings: "Settings") -> StatePart:
    """The state of the cluster at `bootstrap_servers`. SetupError if the client is missing or can't read the state."""
    if bad_servers := [each for each in bootstrap_servers.split(",") if not _SERVER.fullmatch(each)]:
        allowed = "HOST:PORT, or several with commas between them and no spaces, such as kafka-1:9092,kafka-2:9092"
        raise SetupError(
            f"--bootstrap-servers: {bad_servers[0][:60]!r} isn't an address with a port; allowed: {allowed}"
        )
    try:
        admin, errors = import_module("kafka.admin"), import_module("kafka.errors")
    except ImportError:
        message = "kafka-python isn't installed, which --bootstrap-servers needs"
        raise SetupError(f"{message}; allowed: pip install 'kafka-planner[live]'") from None
    _require_certificates(settings)
    timeouts = {"bootstrap_timeout_ms": TIMEOUT_MS, "request_timeout_ms": TIMEOUT_MS}
    servers = {"bootstrap_servers": bootstrap_servers.split(",")}
    try:
        with _silent(), admin.KafkaAdminClient(**{**timeouts, **settings, **servers}) as client:
            kinds = {"topic": admin.ConfigResourceType.TOPIC, "broker": admin.ConfigResourceType.BROKER}
            return read_cluster(
                client,
                lambda kind, name: admin.ConfigResource(kinds[kind], name),
                errors.IncompatibleBrokerVersion,
                bootstrap_servers,
            )
    except (errors.KafkaError, OSError, ValueError, TypeError) as error:
        reason = str(error) or type(error).__name__
        raise SetupError(f"{bootstrap_servers}: the cluster can't be read: {reason}") from None


def _require_certificates(settings: "Settings") -> None:
    """Raises SetupError if Python can't load a certificate or key, because the client would retry until its timeout."""
    pem_files = {key: str(settings[key]) for key in ("ssl_cafile", "ssl_certfile", "ssl_keyfile") if key in settings}
    for path in pem_files.values():
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise SetupError(f"{path}: can't be read: {error.strerror}; allowed: a file in PEM") from None
    try:
        context = ssl.create_default_context(cafile=pem_files.get("ssl_cafile"))
        if "ssl_certfile" in pem_files:
            password = str(settings.get("ssl_password", ""))
            context.load_cert_chain(pem_files["ssl_certfile"], pem_files.get("ssl_keyfile"), password)
    except ssl.SSLError as error:
        files = ", ".join(sorted(set(pem_files.values())))
        raise SetupError(f"{files}: can't be used: {error.reason or error}; allowed: certificates in PEM") from None


@contextmanager
def _silent() -> Iterator[None]:
    """Silences the client, because it logs each attempt and its exception says what went wrong."""
    logger = logging.getLogger("kafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def read_cluster(client: Any, resource: Resource, too_old: type[Exception], servers: str) -> StatePart:
    """The state that a KafkaAdminClient reads; `resource` makes the ConfigResource of a topic or broker.

    `too_old` is the client's error if brokers don't support a request yet (log dirs: before Kafka 1.0, reassignments:
    before 2.4).
    """
    place = Place(servers)
    topics = sorted(client.describe_topics(), key=lambda topic: str(topic["name"]))
    for topic in topics:
        if topic["error_code"]:
            raise SetupError(f"{servers}: topic {topic['name']} can't be read: Kafka's error {topic['error_code']}")
    brokers = sorted(client.describe_cluster()["brokers"], key=lambda broker: int(broker["broker_id"]))
    fenced = [broker["broker_id"] for broker in brokers if broker.get("is_fenced")]
    live = tuple(
        RegisteredBroker(place, broker["broker_id"], broker["rack"] or None)
        for broker in brokers
        if not broker.get("is_fenced")
    )
    notes = [f"broker {broker} is fenced: it is down, or not yet up" for broker in fenced]
    sizes: Mapping[PartitionKey, int] | None = None
    moving: list[RunningReassignment] = []
    try:
        sizes = _sizes(client.describe_log_dirs())
    except too_old:
        notes.append("the brokers are too old to tell sizes: add the output of kafka-log-dirs")
    try:
        for entry, each in sorted(client.list_partition_reassignments().items()):
            adding, removing, replicas = (tuple(each[f"{prefix}replicas"]) for prefix in ("adding_", "removing_", ""))
            key = f"{entry.topic}-{entry.partition}"
            moving.append(RunningReassignment(place, entry.topic, entry.partition, adding, removing, replicas, key))
    except too_old:
        notes.append("the brokers are too old to tell running reassignments: make sure that there are none")
    configs = _configs(client, resource, [topic["name"] for topic in topics], [broker.id for broker in live])
    return replace(
        configs,
        file=servers,
        entries=tuple(_entries(topics, place)),
        leaders_known=True,
        complete=True,
        moving=tuple(moving),
        brokers=live,
        sizes=sizes,
        notes=(*notes, *configs.notes),
    )


def _entries(topics: Iterable[Mapping[str, Any]], place: Place) -> Iterator[AssignmentEntry]:
    for topic in topics:
        name = topic["name"]
        for row in sorted(topic["partitions"], key=lambda each: int(each["partition_index"])):
            number = row["partition_index"]
            leader = row["leader_id"] if row["leader_id"] >= 0 else None
            partition = Partition(number, tuple(row["replica_nodes"]), leader, tuple(row["isr_nodes"]))
            yield AssignmentEntry(place, f"{name}-{number}", name, partition)


def _sizes(answers: Iterable[Mapping[str, Any]]) -> dict[PartitionKey, int]:
    """(topic, partition) to the bytes of its largest replica, without replicas that are moving between log dirs."""
    return largest_sizes(
        ((topic["name"], partition["partition_index"]), partition["partition_size"])
        for answer in answers
        for log_dir in answer["log_dirs"]
        if not log_dir["error_code"]
        for topic in log_dir["topics"]
        for partition in topic["partitions"]
        if not partition["is_future_key"]
    )


def _configs(client: Any, resource: Resource, names: Sequence[str], brokers: Sequence[int]) -> StatePart:
    """The topics' own and inherited configurations, as the broker that answers has them.

    `min.insync.replicas` is read from every broker, because the leader's value applies.
    """
    configs: dict[str, Config] = {}
    inherited: dict[str, str] = {}
    for name, entries in _described(client, "topic", [resource("topic", name) for name in names]):
        if not entries:
            raise SetupError(
                f"the configuration of topic {name} can't be read; allowed: with the permission DescribeConfigs"
            )
        own_values = {key: entry["value"] for key, entry in entries.items() if entry["config_source"] == OF_TOPIC}
        configs[name] = tuple(sorted((key, value) for key, value in own_values.items() if value))
        inherited |= {key: entry["value"] for key, entry in entries.items() if entry["config_source"] in INHERITED}
    by_broker = dict(_described(client, "broker", [resource("broker", str(broker)) for broker in brokers]))
    least, notes = largest_min_insync(
        [
            inherited.get(MIN_INSYNC),
            *(entries[MIN_INSYNC]["value"] for entries in by_broker.values() if MIN_INSYNC in entries),
        ]
    )
    cordons: dict[int, tuple[str, ...]] = {}
    for broker, entries in by_broker.items():
        cordons |= cordoned(int(broker), entries.get(CORDONED, {}).get("value") or "")
    defaults = tuple(sorted((inherited | least).items()))
    return StatePart(TITLE, "", Rank.CLUSTER, configs=configs, notes=notes, config_defaults=defaults, cordoned=cordons)


def _described(client: Any, kind: str, resources: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for start in range(0, len(resources), _AT_ONCE):
        batch = resources[start : start + _AT_ONCE]
        yield from client.describe_configs(batch, config_filter="all").get(kind, {}).items()


Settings = dict[str, str | int | bool]

# Settings that differ only in their names between the clients.
_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.key.password": "ssl_password",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
# Files in PEM: the truststore has authorities, the keystore a certificate and its key.
_STORES = {"truststore": ("ssl_cafile",), "keystore": ("ssl_certfile", "ssl_keyfile")}
# Settings with their own checks below.
_CHECKED = (
    "request.timeout.ms",
    "sasl.jaas.config",
    "ssl.endpoint.identification.algorithm",
    *(f"ssl.{store}.{what}" for store in ("truststore", "keystore") for what in ("location", "type", "password")),
)
_MODULES = ("PlainLoginModule", "ScramLoginModule", "Krb5LoginModule")
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""")
_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def kafka_python_settings(text: str, file: str) -> Settings:
    """kafka-python's settings for a client's properties. SpecError for security settings that it doesn't support.

    Settings that don't concern the connection are ignored. No message repeats a value, because it may be a secret.
    """
    properties = {key: (value, Place(file, line, 1)) for line, key, value in _properties(text)}
    values = {key: value for key, (value, _) in properties.items()}
    places = {key: place for key, (_, place) in properties.items()}
    secure = [key for key in (*_NAMES, *_CHECKED) if key.startswith(("ssl.", "sasl."))]
    if unknown := [key for key in values if key.startswith(("ssl.", "sasl.")) and key not in secure]:
        allowed = ", ".join(sorted(secure))
        raise SpecError(Finding(places[key], key, f"isn't known here; allowed: {allowed}") for key in unknown)
    for key, allowed_values in (("security.protocol", _PROTOCOLS), ("sasl.mechanism", _MECHANISMS)):
        if values.get(key, allowed_values[0]) not in allowed_values:
            raise SpecError([Finding(places[key], key, f"can't be used; allowed: {', '.join(allowed_values)}")])
    settings: Settings = {_NAMES[key]: value for key, value in values.items() if key in _NAMES and value}
    settings |= _stores(values, places) | _login(values, places)
    if (timeout := values.get("request.timeout.ms")) is not None:
        if not re.fullmatch("[0-9]{1,9}", timeout, re.ASCII):
            key = "request.timeout.ms"
            raise SpecError([Finding(places[key], key, "isn't a number of milliseconds; allowed: such as 30000")])
        settings["request_timeout_ms"] = int(timeout)
    if "ssl.endpoint.identification.algorithm" in values:
        settings["ssl_check_hostname"] = bool(values["ssl.endpoint.identification.algorithm"])
    return settings


def _properties(text: str) -> Iterator[tuple[int, str, str]]:
    """The line, key and value of each property. A backslash at the end of a line continues it on the next line."""
    joined, first_number = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r").lstrip()
        if not joined and (not line or line[0] in "#!"):
            continue
        first_number = first_number if joined else number
        joined += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        yield _property(joined, first_number)
        joined = ""
    if joined:
        yield _property(joined, first_number)


def _property(line: str, number: int) -> tuple[int, str, str]:
    match = _ENTRY.match(line)
    key, value = match.groups() if match else (line, "")
    return number, _unescaped(key), _unescaped(value)


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _LETTERS.get(match[2], match[2])

    return _ESCAPE.sub(character, text)


def _stores(values: Mapping[str, str], places: Mapping[str, Place]) -> Settings:
    """The files of certificates and keys, which must be in PEM for Python."""
    settings: Settings = {}
    for store, names in _STORES.items():
        location = values.get(f"ssl.{store}.location")
        if not location:
            continue
        kind = values.get(f"ssl.{store}.type", "JKS").upper()
        if kind != "PEM":
            message = f"a {store} of type {kind[:20]} can't be read; allowed: ssl.{store}.type=PEM"
            raise SpecError([Finding(places[f"ssl.{store}.location"], f"ssl.{store}.location", message)])
        settings |= dict.fromkeys(names, location)
    return settings


def _login(values: Mapping[str, str], places: Mapping[str, Place]) -> Settings:
    """The user name and password in `sasl.jaas.config`. Kerberos needs none, because its tickets are elsewhere."""
    jaas = values.get("sasl.jaas.config")
    if jaas is None:
        return {}
    module = jaas.split()[0].rsplit(".", 1)[-1] if jaas.split() else ""
    options: dict[str, str] = {}
    for name, double, single, bare in (match.groups() for match in _OPTION.finditer(jaas)):
        plain = bare if single is None else single
        # Only in double quotes, a backslash escapes the next character.
        options[name] = plain if double is None else re.sub(r"\\(.)", r"\1", double)
    names = (
        {} if module == "Krb5LoginModule" else {"username": "sasl_plain_username", "password": "sasl_plain_password"}
    )
    if module not in _MODULES or any(name not in options for name in names):
        allowed = f"one of {', '.join(_MODULES)}, with username and password"
        raise SpecError([Finding(places["sasl.jaas.config"], "sasl.jaas.config", f"can't be used; allowed: {allowed}")])
    return {setting: options[name] for name, setting in names.items()}
