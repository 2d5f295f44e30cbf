"""A Java client's properties file, as `--command-config` of Kafka's tools takes it, as settings of librdkafka.

Sources: `java.util.Properties.load`, `org.apache.kafka.common.config.SslConfigs` and `SaslConfigs`, and librdkafka's
CONFIGURATION.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from planner.errors import Finding, Place, SpecError

Settings = dict[str, str]

# Alike in both, but for the name.
_NAMES = {
    "client.id": "client.id",
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanisms",
    "sasl.kerberos.service.name": "sasl.kerberos.service.name",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
    "ssl.key.password": "ssl.key.password",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.cipher.suites": "ssl.cipher.suites",
    "request.timeout.ms": "socket.timeout.ms",
}
_STORES = {
    ("truststore", "PEM"): ("ssl.ca.location",),
    ("keystore", "PEM"): ("ssl.certificate.location", "ssl.key.location"),
    ("keystore", "PKCS12"): ("ssl.keystore.location",),
}
# Said by their own rules below.
_OWN = (
    "sasl.jaas.config",
    "ssl.endpoint.identification.algorithm",
    *(f"ssl.{store}.{what}" for store in ("truststore", "keystore") for what in ("location", "type", "password")),
)
_MODULES = ("PlainLoginModule", "ScramLoginModule", "OAuthBearerLoginModule")
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""")
_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def librdkafka_settings(text: str, file: str) -> Settings:
    """librdkafka's settings for a client's properties. SpecError for security settings that it can't take.

    Settings that have nothing to do with connecting are passed over. No message repeats a value: they may be secrets.
    """
    found = {key: (value, Place(file, line, 1)) for line, key, value in _properties(text)}
    values = {key: value for key, (value, _) in found.items()}
    places = {key: place for key, (_, place) in found.items()}
    unknown = [key for key in values if key.startswith(("ssl.", "sasl.")) and key not in (*_NAMES, *_OWN)]
    if unknown:
        allowed = ", ".join(sorted(key for key in (*_NAMES, *_OWN) if key.startswith(("ssl.", "sasl."))))
        raise SpecError(Finding(places[key], key, f"isn't known here; allowed: {allowed}") for key in unknown)
    settings = {_NAMES[key]: value for key, value in values.items() if key in _NAMES and value}
    settings |= _stores(values, places) | _login(values, places)
    if "ssl.endpoint.identification.algorithm" in values:
        asked = values["ssl.endpoint.identification.algorithm"].lower()
        settings["ssl.endpoint.identification.algorithm"] = asked or "none"
    return settings


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
    """Files of certificates and keys: librdkafka reads PEM, and PKCS12 for the client's own."""
    settings: Settings = {}
    for store in ("truststore", "keystore"):
        location = values.get(f"ssl.{store}.location")
        if not location:
            continue
        kind = values.get(f"ssl.{store}.type", "JKS").upper()
        names = _STORES.get((store, kind))
        if names is None:
            kinds = " or ".join(kind for name, kind in _STORES if name == store)
            message = f"a {store} of type {kind[:20]} can't be read; allowed: ssl.{store}.type={kinds}"
            raise SpecError([Finding(places[f"ssl.{store}.location"], f"ssl.{store}.location", message)])
        settings |= dict.fromkeys(names, location)
        if kind == "PKCS12" and f"ssl.{store}.password" in values:
            settings[f"ssl.{store}.password"] = values[f"ssl.{store}.password"]
    return settings


def _login(values: Mapping[str, str], places: Mapping[str, Place]) -> Settings:
    """Name and password, or the client's id and secret, from `sasl.jaas.config`."""
    jaas = values.get("sasl.jaas.config")
    if jaas is None:
        return {}
    module = jaas.split()[0].rsplit(".", 1)[-1] if jaas.split() else ""
    options = {match[1]: _option(match) for match in _OPTION.finditer(jaas)}
    if module == "OAuthBearerLoginModule":
        names = {"clientId": "sasl.oauthbearer.client.id", "clientSecret": "sasl.oauthbearer.client.secret"}
        scope = {"sasl.oauthbearer.scope": options["scope"]} if "scope" in options else {}
        method = {"sasl.oauthbearer.method": "oidc"}
    else:
        names, scope, method = {"username": "sasl.username", "password": "sasl.password"}, {}, {}
    missing = [name for name in names if name not in options]
    if module not in _MODULES or missing:
        allowed = f"one of {', '.join(_MODULES)}, with {' and '.join(names)}"
        raise SpecError([Finding(places["sasl.jaas.config"], "sasl.jaas.config", f"can't be used; allowed: {allowed}")])
    return {setting: options[name] for name, setting in names.items()} | scope | method


def _option(match: re.Match[str]) -> str:
    if match[2] is not None:
        return re.sub(r"\\(.)", r"\1", match[2])
    return str(match[3] if match[3] is not None else match[4])
