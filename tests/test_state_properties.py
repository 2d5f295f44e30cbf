"""A Java client's properties as librdkafka's settings."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.state_properties import librdkafka_settings

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def test_tls_with_a_password() -> None:
    """SASL over TLS with a PEM file of authorities, the commonest of all."""
    text = (
        "# comment\n! another\n\nsecurity.protocol = SASL_SSL\r\n"
        "sasl.mechanism: SCRAM-SHA-512\n"
        f'sasl.jaas.config={SCRAM} \\\n   username="al\\"ice" \\\n   password=\'p w;\';\n'
        "ssl.truststore.type=PEM\nssl.truststore.location=/etc/ca.pem\nssl.endpoint.identification.algorithm=\n"
        "retries=5\nrequest.timeout.ms 1000\n"
    )
    expected = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": 'al"ice',
        "sasl.password": "p w;",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "socket.timeout.ms": "1000",
    }
    # The properties file's own backslash goes first, so the quote needs two.
    assert expected == librdkafka_settings(text.replace('\\"ice', '\\\\"ice'), "c.properties")


def test_a_certificate_of_ones_own() -> None:
    """A keystore in PEM holds both key and certificate; in PKCS12 it has a password."""
    pem = "ssl.keystore.type=PEM\nssl.keystore.location=/k.pem\nssl.key.password=x\n"
    pkcs = "ssl.keystore.type=PKCS12\nssl.keystore.location=/k.p12\nssl.keystore.password=y\n"
    assert {
        "ssl.certificate.location": "/k.pem",
        "ssl.key.location": "/k.pem",
        "ssl.key.password": "x",
    } == librdkafka_settings(pem, "c")
    assert {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "y"} == librdkafka_settings(pkcs, "c")


def test_tokens() -> None:
    """A client's id and secret at a token endpoint."""
    text = (
        "sasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https\\://t/\n"
        "sasl.jaas.config=x.OAuthBearerLoginModule required clientId=i clientSecret=s scope=all ;\n"
    )
    assert {
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://t/",
        "sasl.oauthbearer.client.id": "i",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "all",
        "sasl.oauthbearer.method": "oidc",
    } == librdkafka_settings(text, "c")


@pytest.mark.parametrize(
    ("text", "where", "allowed"),
    [
        ("\nssl.truststore.location=/a.jks", "c:2:1: ssl.truststore.location", "allowed: ssl.truststore.type=PEM"),
        ("ssl.keystore.location=/a", "c:1:1: ssl.keystore.location", "allowed: ssl.keystore.type=PEM or PKCS12"),
        ("sasl.login.class=x", "c:1:1: sasl.login.class", "isn't known here; allowed: sasl.jaas.config"),
        ("sasl.jaas.config=x.Krb5LoginModule required;", "c:1:1: sasl.jaas.config", "allowed: one of PlainLoginModule"),
        ("sasl.jaas.config=", "c:1:1: sasl.jaas.config", "allowed: one of PlainLoginModule"),
        (f"sasl.jaas.config={SCRAM} username=x;", "c:1:1: sasl.jaas.config", "with username and password"),
    ],
)
def test_what_librdkafka_cannot_do_is_refused(text: str, where: str, allowed: str) -> None:
    """By key and line, and never with the value."""
    with pytest.raises(SpecError) as caught:
        librdkafka_settings(text, "c")
    assert str(caught.value).startswith(where)
    assert allowed in str(caught.value)
    assert text.partition("=")[2] not in str(caught.value) or not text.partition("=")[2]
