"""Missing or invalid settings of sign-on are reported before the service starts."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from infra_service.lib.environment import Environment, MountedSecrets
from infra_service.sign_on.configuration import sign_on_apps
from tests.support.new_process import output_of

COMPLETE = {
    "issuer": "https://idp.example/realms/ops",
    "client_id": "infra",
    "client_secret": "hunter2",
    "group_map": {"ops": "operator"},
    "admin_login": "both",
    "second_factor": "off",
}


def test_sign_on_is_absent_without_a_provider(db: None) -> None:
    assert [app.name for app in apps.get_app_configs() if app.name.startswith("allauth")] == []
    assert not any("allauth" in name for name in settings.MIDDLEWARE)
    assert (
        Client().get("/admin/sign-on/").status_code == 302
    )  # as every unknown page: to the log-in
    assert b"Sign on" not in Client().get("/admin/login/").content


def test_optional_packages_are_not_loaded_without_a_provider() -> None:
    script = (
        "import django, sys; django.setup(); import infra_service.wsgi;"
        "print([m for m in ('allauth', 'fido2') if m in sys.modules])"
    )
    assert output_of(script) == "[]\n"


def test_complete_settings_are_accepted() -> None:
    assert "allauth.socialaccount" in sign_on_apps(**COMPLETE)  # type: ignore[arg-type]
    alone = {**COMPLETE, "issuer": "", "admin_login": "password"}
    assert sign_on_apps(**alone) == []  # type: ignore[arg-type]
    assert "allauth.mfa" in sign_on_apps(**{**alone, "second_factor": "required"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"admin_login": "ldap"}, "must be password, oidc or both"),
        ({"issuer": ""}, "ADMIN_LOGIN=both needs OIDC_ISSUER"),
        ({"second_factor": "on"}, "must be off, optional or required"),
        ({"issuer": "http://idp.example"}, "must be an https:// address"),
        ({"issuer": "idp.example"}, "must be an https:// address"),
        ({"issuer": "https:///realms"}, "must be an https:// address"),
        ({"issuer": f"https://idp.example/{'x' * 200}"}, "at most 200 characters"),
        ({"client_id": ""}, "OIDC_ISSUER needs OIDC_CLIENT_ID$"),
        ({"client_secret": "", "group_map": {}}, "needs OIDC_CLIENT_SECRET, OIDC_GROUP_MAP$"),
    ],
)
def test_invalid_settings_are_reported_without_secrets(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=message) as caught:
        sign_on_apps(**{**COMPLETE, **change})

    assert "hunter2" not in str(caught.value)


def test_the_extra_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    alone = {**COMPLETE, "issuer": "", "admin_login": "password", "second_factor": "optional"}

    for given, setting in ((COMPLETE, "OIDC_ISSUER"), (alone, "ADMIN_SECOND_FACTOR=optional")):
        with pytest.raises(ImproperlyConfigured, match=rf"{setting} .*'infra-service\[sso\]'"):
            sign_on_apps(**given)  # type: ignore[arg-type]


class Env(Environment):
    ENVIRON = MountedSecrets(cache=False)


def test_map_of_groups_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAP", " ops = operator ,cn=admins=administrator,two words=viewer")

    assert Env().pairs("MAP", default="") == {
        "ops": "operator",
        "cn=admins": "administrator",
        "two words": "viewer",
    }


@pytest.mark.parametrize("value", ["ops", "ops=", "=operator", "ops=operator,ops=viewer"])
def test_invalid_map_is_rejected(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAP", value)

    with pytest.raises(ImproperlyConfigured, match="MAP must have the form theirs=ours"):
        Env().pairs("MAP", default="")
