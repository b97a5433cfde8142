"""Image names that the reference grammar accepts or rejects."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.kubernetes.images import full_repository, parse_image, running_image

A, B = "sha256:" + "a" * 64, "sha256:" + "0b" * 32
LONG = "sha512:" + "c" * 128


@pytest.mark.parametrize(
    ("text", "repository", "tag", "digest"),
    [
        ("nginx", "docker.io/library/nginx", "latest", ""),
        ("nginx:1.27", "docker.io/library/nginx", "1.27", ""),
        ("docker.io/nginx", "docker.io/library/nginx", "latest", ""),
        ("index.docker.io/nginx:1", "docker.io/library/nginx", "1", ""),
        ("bitnami/redis", "docker.io/bitnami/redis", "latest", ""),
        (f"nginx@{A}", "docker.io/library/nginx", "", A),
        (f"nginx:1.27@{B}", "docker.io/library/nginx", "1.27", B),
        (f"ghcr.io/a/b@{LONG}", "ghcr.io/a/b", "", LONG),
        ("localhost/app", "localhost/app", "latest", ""),
        ("localhost:5000/app:v1", "localhost:5000/app", "v1", ""),
        ("registry:5000/app", "registry:5000/app", "latest", ""),
        ("app:5000", "docker.io/library/app", "5000", ""),
        ("192.0.2.1:5000/a/b:c", "192.0.2.1:5000/a/b", "c", ""),
        ("[2001:db8::1]:5000/app:x", "[2001:db8::1]:5000/app", "x", ""),
        ("[2001:db8::1]/app", "[2001:db8::1]/app", "latest", ""),
        ("Registry/app", "Registry/app", "latest", ""),
        ("registry.k8s.io/e2e-test/a__b.c--d:V_1.0-x", "registry.k8s.io/e2e-test/a__b.c--d",
         "V_1.0-x", ""),
        ("xn--7o8h.com/app", "xn--7o8h.com/app", "latest", ""),
        ("a" * 255 + ":" + "t" * 128, None, None, None),  # library/ makes it too long
        ("r.example/" + "a" * 255, "r.example/" + "a" * 255, "latest", ""),
    ],
)  # fmt: skip
def test_image_names_are_parsed(text: str, repository: str | None, tag: str, digest: str) -> None:
    assert parse_image(text) == (repository and (repository, tag, digest))


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "@", "/", ":tag", f"@{A}", "nginx:", "nginx@", "nginx:@", "Nginx", "a/B", "a//b",
        "a/", "/a", "-a", "a-", "a..b", "a___b", "a._b", "nginx:-1", "nginx:" + "t" * 129,
        "nginx@sha256:abc", "nginx@" + A.upper(), "nginx@md5:" + "a" * 32, f"nginx@{A}:1",
        f"nginx@{A}@{A}", "r.example/" + "a" * 256, "a" * 64, "https://r.example/a", "a b", "a\n",
        "nginx:1\n", "-r.example/a", "r.example:/a", "r.example:x/a", "[::1/a", "é/a", "nginx:٣",
        "x" * 100_000, "a." * 1000 + "!",
    ],
)  # fmt: skip
def test_invalid_image_name_is_rejected(text: str) -> None:
    assert parse_image(text) is None


def test_the_longest_image_name_is_accepted() -> None:
    repository = ".".join(["r" * 32] * 8) + "/" + "/".join(["p" * 127] * 2)
    text = f"{repository}:{'t' * 128}@{LONG}"
    assert parse_image(text) == (repository, "t" * 128, LONG)


@pytest.mark.parametrize("character", ["x", "\U0001f600"])
def test_a_long_text_is_not_kept(character: str) -> None:
    tracemalloc.start()
    try:
        for number in range(20):
            text = f"{number}{character * 200_000}"
            assert parse_image(text) is None
            assert full_repository(text) == text
        text = ""
        kept, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 200_000


@pytest.mark.parametrize(
    ("image", "image_id", "running"),
    [
        ("nginx:1", f"docker-pullable://nginx@{A}", f"nginx:1@{A}"),
        ("nginx:1", f"docker.io/library/nginx@{A}", f"nginx:1@{A}"),
        ("nginx:1", A, f"nginx:1@{A}"),
        ("nginx:1", f"docker://{A}", f"nginx:1@{A}"),
        ("nginx:1", "a" * 64, f"nginx:1@{A}"),
        # An image that was pulled under another name has the digest of this name.
        ("mirror.example/nginx:1", f"docker.io/library/nginx@{A}", f"mirror.example/nginx:1@{A}"),
        (f"nginx@{B}", f"nginx@{A}", f"nginx@{A}"),
        ("nginx:1", "", ""),
        # A tag is no digest.
        ("nginx:1", "docker://nginx:1", ""),
        ("nginx:1", "docker.io/library/nginx:1", ""),
        ("nginx:1", "sha256:abc", ""),
        ("", A, ""),
        ("x" * 2048, A, ""),
    ],
)
def test_running_image_is_built_from_image_and_image_id(
    image: str, image_id: str, running: str
) -> None:
    assert running_image(image, image_id) == running


def test_a_tag_that_moved_is_two_images() -> None:
    before, after = (running_image("app:latest", digest) for digest in (A, B))

    assert parse_image(before) != parse_image(after)


@pytest.mark.parametrize(
    ("text", "repository"),
    [("nginx", "docker.io/library/nginx"), ("ghcr.io/a/b", "ghcr.io/a/b"), ("a:1", "a:1"),
     ("NOT A NAME", "NOT A NAME")],
)  # fmt: skip
def test_a_repository_may_be_written_as_in_a_manifest(text: str, repository: str) -> None:
    assert full_repository(text) == repository


@given(st.text(max_size=80), st.text(alphabet="a:/@.-_5", max_size=40))
def test_parsed_image_is_stable_when_parsed_again(text: str, alike: str) -> None:
    for given_text in (text, alike, running_image(alike, A)):
        image = parse_image(given_text)
        if image is not None:
            again = parse_image(
                image.repository
                + (image.tag and f":{image.tag}")
                + (image.digest and f"@{image.digest}")
            )
            assert again == image
