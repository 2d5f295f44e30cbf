"""A Java client's properties file, as `--command-config` of Kafka's tools takes it, as settings of kafka-python.

Sources: `java.util.Properties.load`, `org.apache.kafka.common.config.SslConfigs` and `SaslConfigs`, and kafka-python's
`KafkaAdminClient`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.inputs.yaml_source import decode
from planner.model import file_reading
from planner.model.errors import Finding, Place, SetupError, SpecError
from planner.model.file_reading import UnreadableError

Settings = dict[str, str | int | bool]

# Settings that differ only in their names.
_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.key.password": "ssl_password",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
# Files in PEM: authorities; a certificate and its key.
_STORES = {"truststore": ("ssl_cafile",), "keystore": ("ssl_certfile", "ssl_keyfile")}
# Checked by their own rules below.
_OWN = (
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
    """kafka-python's settings for a client's properties. SpecError for security settings that it can't take.

    Settings that don't concern the connection are ignored. No message repeats a value: they may be secrets.
    """
    found = {key: (value, Place(file, line, 1)) for line, key, value in _properties(text)}
    values = {key: value for key, (value, _) in found.items()}
    places = {key: place for key, (_, place) in found.items()}
    _require_known(values, places)
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


def _require_known(values: Mapping[str, str], places: Mapping[str, Place]) -> None:
    unknown = [key for key in values if key.startswith(("ssl.", "sasl.")) and key not in (*_NAMES, *_OWN)]
    if unknown:
        allowed = ", ".join(sorted(key for key in (*_NAMES, *_OWN) if key.startswith(("ssl.", "sasl."))))
        raise SpecError(Finding(places[key], key, f"isn't known here; allowed: {allowed}") for key in unknown)
    for key, allowed_values in (("security.protocol", _PROTOCOLS), ("sasl.mechanism", _MECHANISMS)):
        if values.get(key, allowed_values[0]) not in allowed_values:
            message = f"can't be used; allowed: {', '.join(allowed_values)}"
            raise SpecError([Finding(places[key], key, message)])


def _properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, key and value of each property; a backslash at the end of a line goes on in the next."""
    begun, first = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r").lstrip()
        if not begun and (not line or line[0] in "#!"):
            continue
        first = first if begun else number
        begun += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        yield _property(begun, first)
        begun = ""
    if begun:
        yield _property(begun, first)


def _property(line: str, number: int) -> tuple[int, str, str]:
    match = _ENTRY.match(line)
    key, value = match.groups() if match else (line, "")
    return number, _plain(key), _plain(value)


def _plain(text: str) -> str:
    def of(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _LETTERS.get(match[2], match[2])

    return _ESCAPE.sub(of, text)


def _stores(values: Mapping[str, str], places: Mapping[str, Place]) -> Settings:
    """Files of certificates and keys, which Python reads in PEM."""
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
    """Name and password from `sasl.jaas.config`; Kerberos has its tickets elsewhere."""
    jaas = values.get("sasl.jaas.config")
    if jaas is None:
        return {}
    module = jaas.split()[0].rsplit(".", 1)[-1] if jaas.split() else ""
    options = {match[1]: _option(match) for match in _OPTION.finditer(jaas)}
    names = (
        {} if module == "Krb5LoginModule" else {"username": "sasl_plain_username", "password": "sasl_plain_password"}
    )
    if module not in _MODULES or any(name not in options for name in names):
        allowed = f"one of {', '.join(_MODULES)}, with username and password"
        raise SpecError([Finding(places["sasl.jaas.config"], "sasl.jaas.config", f"can't be used; allowed: {allowed}")])
    return {setting: options[name] for name, setting in names.items()}


def _option(match: re.Match[str]) -> str:
    if match[2] is not None:
        return re.sub(r"\\(.)", r"\1", match[2])
    return str(match[3] if match[3] is not None else match[4])


def client_settings(path: Path | None) -> Settings:
    """What a Java client's properties file says, as kafka-python takes it; nothing without a file."""
    if path is None:
        return {}
    try:
        data = file_reading.read_bytes(path, file_reading.SHORT)
    except UnreadableError as error:
        raise SetupError(str(error)) from None
    return kafka_python_settings(decode(data, path.as_posix()), path.as_posix())
