"""A cluster with TLS, SASL/SCRAM passwords, and an authorizer that denies everything without an ACL."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cluster import Cluster

ADMIN, MOVER = "admin", "mover"
_PASSWORD = "not-a-secret-but-long"
_SECURITY = {
    "sasl.mechanism": "SCRAM-SHA-512",
    "security.protocol": "SASL_SSL",
    "ssl.truststore.password": "changeit",
    "ssl.truststore.type": "PKCS12",
}


class SecuredCluster(Cluster):
    """Brokers with one secured listener, where `admin` is a super user. The controller has its own listener."""

    def _controller_settings(self) -> dict[str, object]:
        return super()._controller_settings() | self._authorizer()

    def _broker_settings(self, broker: int) -> dict[str, object]:
        return (
            super()._broker_settings(broker)
            | self._authorizer()
            | {
                "listeners": f"SASL_SSL://127.0.0.1:{self.ports[broker]}",
                "inter.broker.listener.name": "SASL_SSL",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": _login(ADMIN, _PASSWORD),
                "ssl.keystore.location": self.folder / "key.p12",
                "ssl.keystore.password": "changeit",
                "ssl.keystore.type": "PKCS12",
                "ssl.truststore.location": self.folder / "trust.p12",
                "ssl.truststore.password": "changeit",
                "ssl.truststore.type": "PKCS12",
            }
        )

    def _authorizer(self) -> dict[str, object]:
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
        }

    def format(self, *options: str) -> None:
        """Format the disks, with a certificate, and with the admin's password in the cluster's first records."""
        self._make_certificate()
        self.client(ADMIN)
        super().format("--add-scram", f"SCRAM-SHA-512=[name={ADMIN},password={_PASSWORD}]", *options)

    def _make_certificate(self) -> None:
        key, trust, certificate = (str(self.folder / name) for name in ("key.p12", "trust.p12", "cert.pem"))
        given = ("-storepass", "changeit", "-alias", "kafka")
        made = (
            "-genkeypair",
            "-keyalg",
            "RSA",
            "-dname",
            "CN=localhost",
            "-ext",
            "SAN=ip:127.0.0.1",
            "-validity",
            "30",
        )
        _keytool(*made, *given, "-keystore", key, "-storetype", "PKCS12")
        _keytool("-exportcert", "-rfc", *given, "-keystore", key, "-file", certificate)
        _keytool("-importcert", "-noprompt", *given, "-keystore", trust, "-storetype", "PKCS12", "-file", certificate)

    def client(self, user: str, password: str = _PASSWORD) -> Path:
        """Write the properties with which a tool logs in as this user."""
        settings = _SECURITY | {
            "sasl.jaas.config": _login(user, password),
            "ssl.truststore.location": str(self.folder / "trust.p12"),
        }
        path = self.folder / f"{user}-{len(password)}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def add_user(self, user: str) -> None:
        """Add a user, with the default password of `client`."""
        password = f"SCRAM-SHA-512=[password={_PASSWORD}]"
        self.tool("kafka-configs", "--alter", "--add-config", password, "--entity-type", "users", "--entity-name", user)

    def tool(self, name: str, *arguments: object, **environment: str) -> str:
        """Run a tool as the admin."""
        return super().tool(name, *arguments, "--command-config", self.client(ADMIN), **environment)


def _login(user: str, password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'


def _keytool(*arguments: str) -> None:
    ended = subprocess.run(["keytool", *arguments], capture_output=True, text=True, check=False)
    assert 0 == ended.returncode, ended.stdout + ended.stderr
