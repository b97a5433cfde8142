"""``terraform login`` by OAuth: the page that confirms it, codes, and the issued token."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from django.test import RequestFactory
from django.utils.html import escape

from apikeys.api.login_tokens import LoginTokenView
from apikeys.models import AccessToken, User
from tests.e2e.remote import RemoteTerraform
from tests.e2e.terraform import BINARY
from tests.infra_service.sign_on.conftest import Service, Visitor
from tests.support.openid_provider import Provider

PAGE = "/admin/apikeys/accesstoken/terraform-login/"
TOKEN = "/v1/oauth/login"
VERIFIER = secrets.token_urlsafe(48)
REDIRECT = "http://localhost:10007/login"
REQUEST = {
    "client_id": "terraform-cli",
    "response_type": "code",
    "redirect_uri": REDIRECT,
    "state": "af0ifjsldkj",
    "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest())
    .rstrip(b"=")
    .decode(),
    "code_challenge_method": "S256",
}


@pytest.fixture
def administrator(provider: Provider, visitor: Visitor) -> Visitor:
    """A browser in which an administrator has signed on."""
    name = f"p{secrets.token_hex(6)}"
    provider.person = {"sub": name, "preferred_username": name, "groups": ["cn=admins"]}
    assert visitor.sign_on().status_code == 200
    visitor.headers["X-User"] = name
    return visitor


def confirm(visitor: Visitor, address: str, **form: Any) -> requests.Response:
    """Open the authorization page, and submit its form."""
    page = visitor.get(address)
    assert page.status_code == 200, page.text
    assert f"terraform login {urlsplit(page.url).netloc}" in page.text
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert found is not None
    given = {"scopes": ["state:read", "state:write"], "days": "7", **form}
    given["csrfmiddlewaretoken"] = found[1]
    return visitor.post(address, given, headers={"Referer": page.url})


def listener_of(page: requests.Response) -> str:
    """Return the address to which the page sends the browser."""
    found = re.search(r'content="0; url=([^"]+)"', page.text)
    assert found is not None, page.text
    return found[1].replace("&amp;", "&")


def code_of(visitor: Visitor, **form: Any) -> str:
    page = confirm(visitor, f"{PAGE}?{urlencode(REQUEST)}", **form)
    address = urlsplit(listener_of(page))
    assert f"{address.scheme}://{address.netloc}{address.path}" == REDIRECT
    query = parse_qs(address.query)
    assert query["state"] == [REQUEST["state"]]
    return query["code"][0]


def exchange(service: Service, code: str, **changed: str) -> requests.Response:
    form = {
        "grant_type": "authorization_code",
        "client_id": "terraform-cli",
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        **changed,
    }
    return requests.post(f"{service.url}{TOKEN}", form, timeout=30)


def test_discovery_announces_the_login(service: Service) -> None:
    services = service.request("GET", "/.well-known/terraform.json").json()

    assert services["login.v1"] == {
        "client": "terraform-cli",
        "grant_types": ["authz_code"],
        "authz": PAGE,
        "token": TOKEN,
        "ports": [10000, 10010],
    }


def test_code_is_exchanged_once(service: Service, administrator: Visitor) -> None:
    code = code_of(administrator)

    issued = exchange(service, code)

    assert issued.status_code == 200, issued.text
    answer = issued.json()
    assert (answer["token_type"], answer["scope"]) == ("Bearer", "state:read state:write")
    assert 7 * 86400 - 60 < answer["expires_in"] <= 7 * 86400
    assert issued.headers["Cache-Control"] == "no-store"
    account = service.request("GET", "/api/v2/account/details", token=answer["access_token"])
    name = administrator.headers["X-User"]
    assert account.json()["data"]["attributes"]["username"] == name
    events = service.events("access_token.issue")
    (event,) = [e for e in events if e.actor_name == name]
    assert (event.details["owner"], event.details["name"]) == (name, "terraform login")
    confirmed = [e.resource_id for e in service.events("access_token.authorize")]
    assert event.resource_id in confirmed

    again = exchange(service, code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    tokens = service.send(lambda: AccessToken.objects.filter(created_by__username=name).count())
    assert tokens == 1
    log = service.log.read_text()
    assert code not in log
    assert VERIFIER not in log
    assert answer["access_token"] not in log


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": secrets.token_urlsafe(48)}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"code_verifier": "\N{SNOWMAN}" * 43}, "invalid_grant"),
        ({"redirect_uri": "http://localhost:10008/login"}, "invalid_grant"),
        ({"code": "0123456789abcdef.AAAA"}, "invalid_grant"),
        ({"code": "\N{SNOWMAN}"}, "invalid_grant"),
        ({"client_id": "other"}, "invalid_client"),
        ({"grant_type": "refresh_token"}, "unsupported_grant_type"),
    ],
)
def test_exchange_refuses_other_requests(
    service: Service, administrator: Visitor, changed: dict[str, str], error: str
) -> None:
    code = code_of(administrator)

    refused = exchange(service, **{"code": code, **changed})

    assert (refused.status_code, refused.json()["error"]) == (400, error)
    assert exchange(service, code).status_code == 200  # a refusal does not consume the code


def test_client_id_by_http_basic(service: Service, administrator: Visitor) -> None:
    form = {
        "grant_type": "authorization_code",
        "code": code_of(administrator),
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }
    url = f"{service.url}{TOKEN}"

    for header in ("Basic !", "Basic \xe9", "Basic " + base64.b64encode(b"\xff").decode()):
        refused = requests.post(url, form, headers={"Authorization": header}, timeout=30)
        assert refused.json()["error"] == "invalid_client"
    assert requests.post(url, form, auth=("terraform-cli", "x"), timeout=30).status_code == 400
    assert requests.post(url, form, auth=("terraform-cli", ""), timeout=30).status_code == 200


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"client_id": "other"}, "client_id must be terraform-cli"),
        ({"response_type": "token"}, "response_type must be code"),
        ({"code_challenge_method": "plain"}, "code_challenge_method must be S256"),
        ({"code_challenge": ""}, "code_challenge must be"),
        ({"state": ""}, "state must have 1 to 500"),
        ({"redirect_uri": "http://localhost:10011/login"}, "port 10000 to 10010"),
        ({"redirect_uri": "http://localhost:10007/login?next=x"}, "port 10000 to 10010"),
        ({"redirect_uri": "http://localhost:10007@evil.example/login"}, "port 10000 to 10010"),
        ({"redirect_uri": "https://evil.example/login"}, "port 10000 to 10010"),
    ],
)
def test_page_refuses_other_requests(
    administrator: Visitor, changed: dict[str, str], words: str
) -> None:
    page = administrator.get(PAGE, params={**REQUEST, **changed})

    assert page.status_code == 400
    assert escape(words) in page.text


def test_form_refuses_other_scopes_and_forged_posts(administrator: Visitor) -> None:
    address = f"{PAGE}?{urlencode(REQUEST)}"
    for form in ({"scopes": ["apikey:write"]}, {"scopes": []}, {"days": "365"}):
        page = confirm(administrator, address, **form)
        assert "url=http" not in page.text

    forged = administrator.post(address, {"scopes": ["state:read"], "days": "7"})
    assert forged.status_code == 403


def test_page_needs_a_session_and_the_permission(
    service: Service, provider: Provider, visitor: Visitor
) -> None:
    address = f"{PAGE}?{urlencode(REQUEST)}"
    visitor.headers["X-User"] = ""
    login = visitor.get(address, allow_redirects=False)
    assert (login.status_code, urlsplit(login.headers["Location"]).path) == (302, "/admin/login/")
    name = f"p{secrets.token_hex(6)}"
    provider.person = {"sub": name, "preferred_username": name, "groups": ["cn=admins"]}
    visitor.sign_on()
    code = code_of(visitor)

    def lose_groups() -> None:
        User.objects.get(username=name).groups.clear()

    service.send(lose_groups)

    assert visitor.get(address).status_code == 403
    assert exchange(service, code).json()["error"] == "invalid_grant"


@pytest.mark.terraform
def test_terraform_logs_in(service: Service, administrator: Visitor, tmp_path: Path) -> None:
    if BINARY is None:
        pytest.skip("neither terraform nor tofu is on the PATH")
    announced = service.request("GET", "/.well-known/terraform.json").json()["login.v1"]
    absolute = {name: f"{service.url}{announced[name]}" for name in ("authz", "token")}
    tf = RemoteTerraform(tmp_path / "tf", service, "")

    def authorize(url: str) -> None:
        page = confirm(administrator, url, scopes=["state:read", "state:write", "state:admin"])
        # The client may close its listener before it has sent the response.
        with contextlib.suppress(requests.ConnectionError):
            requests.get(listener_of(page), timeout=30)

    out = tf.log_in_by(authorize, **{**announced, **absolute})

    assert "Terraform has obtained and saved an API token" in out
    stored = json.loads((tmp_path / "tf/home/.terraform.d/credentials.tfrc.json").read_text())
    token = stored["credentials"]["infra.example"]["token"]
    granted = service.request("GET", "/v1/whoami", token=token).json()["caller"]
    assert granted["scopes"] == ["state:admin", "state:read", "state:write"]


def test_exchange_without_its_body_is_refused() -> None:
    class Lost(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            raise ConnectionResetError

    environ = {"wsgi.input": Lost(), "CONTENT_LENGTH": "200"}
    environ["CONTENT_TYPE"] = "application/x-www-form-urlencoded"
    request: Any = RequestFactory().generic("POST", TOKEN, **environ)
    request.request_id = "1"

    answer = LoginTokenView.as_view()(request)

    assert answer.status_code == 400
    assert answer.data["error"]["details"][0]["reason"] == "BODY_INCOMPLETE"
