"""A Java client's properties as kafka-python's settings."""

from __future__ import annotations

import pytest

from planner.inputs.state.client_properties import kafka_python_settings
from planner.model.errors import SpecError

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
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": 'al"ice',
        "sasl_plain_password": "p w;",
        "ssl_cafile": "/etc/ca.pem",
        "ssl_check_hostname": False,
        "request_timeout_ms": 1000,
    }
    # The properties file's own backslash goes first, so the quote needs two.
    assert expected == kafka_python_settings(text.replace('\\"ice', '\\\\"ice'), "c.properties")


def test_a_certificate_of_ones_own() -> None:
    """A keystore in PEM holds both key and certificate."""
    pem = "ssl.keystore.type=PEM\nssl.keystore.location=/k.pem\nssl.key.password=x\n"
    assert {"ssl_certfile": "/k.pem", "ssl_keyfile": "/k.pem", "ssl_password": "x"} == kafka_python_settings(pem, "c")


def test_kerberos_needs_no_password() -> None:
    """Its tickets are the machine's."""
    text = "sasl.mechanism=GSSAPI\nsasl.kerberos.service.name=k\nsasl.jaas.config=x.Krb5LoginModule required;\n"
    assert {"sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "k"} == kafka_python_settings(text, "c")


@pytest.mark.parametrize(
    ("text", "where", "allowed"),
    [
        ("\nssl.truststore.location=/a.jks", "c:2:1: ssl.truststore.location", "allowed: ssl.truststore.type=PEM"),
        ("ssl.keystore.location=/a", "c:1:1: ssl.keystore.location", "allowed: ssl.keystore.type=PEM"),
        ("security.protocol=NONE", "c:1:1: security.protocol", "allowed: PLAINTEXT, SSL"),
        ("sasl.mechanism=OAUTHBEARER", "c:1:1: sasl.mechanism", "allowed: PLAIN, SCRAM-SHA-256"),
        ("request.timeout.ms=soon", "c:1:1: request.timeout.ms", "allowed: such as 30000"),
        ("sasl.login.class=x", "c:1:1: sasl.login.class", "isn't known here; allowed: sasl.jaas.config"),
        (
            "sasl.jaas.config=x.TokenLoginModule required;",
            "c:1:1: sasl.jaas.config",
            "allowed: one of PlainLoginModule",
        ),
        ("sasl.jaas.config=", "c:1:1: sasl.jaas.config", "allowed: one of PlainLoginModule"),
        (f"sasl.jaas.config={SCRAM} username=x;", "c:1:1: sasl.jaas.config", "with username and password"),
    ],
)
def test_what_the_client_cannot_do_is_refused(text: str, where: str, allowed: str) -> None:
    """By key and line, and never with the value."""
    with pytest.raises(SpecError) as caught:
        kafka_python_settings(text, "c")
    assert str(caught.value).startswith(where)
    assert allowed in str(caught.value)
    assert text.partition("=")[2] not in str(caught.value) or not text.partition("=")[2]
