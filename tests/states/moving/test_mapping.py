"""Mapping from keys to names: the usual patterns, map files, and errors in a map."""

from pathlib import Path

import pytest

from states.addresses import Names
from states.moving.mapping import Map, MapError, unmatched


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("env:/prod/network/terraform.tfstate", ("network", "prod")),
        ("env:/prod/network.tfstate", ("network", "prod")),
        ("network/terraform.tfstate.d/prod/terraform.tfstate", ("network", "prod")),
        ("prod/network/terraform.tfstate", ("network", "prod")),
        ("Prod_EU/network.tfstate", ("network", "prod-eu")),
        ("shop-network-prod", ("shop-network", "prod")),
    ],
)
def test_default_patterns_match_usual_keys(key: str, names: tuple[str, str]) -> None:
    component, environment = names

    assert Map.default().names(key) == Names(component=component, environment=environment)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("network", ""),
        ("a/b/c/d.tfstate", ""),
        ("prod/network.json", ""),
        ("network/.terraform/terraform.tfstate", "--component"),
        ("terraform.tfstate", "--component"),
        ("network/terraform.tfstate", "--component"),
        ("network/default.tfstate", "--component"),
        ("terraform.tfstate.d/dev/terraform.tfstate", "--component"),
        ("live/network/terraform.tfstate.d/dev/terraform.tfstate", "--component"),
        ("terraform.tfstate.d/dev.tfstate", "--component"),
        ("env:/dev/terraform.tfstate", "--component"),
        ("env:/dev.tfstate", "--component"),
        ("env:/dev/a/b/terraform.tfstate", "--component"),
        ("errored.tfstate", "state push"),
        ("network/errored.tfstate", "state push"),
        ("prod/network/errored.tfstate", "state push"),
        ("terraform.tfstate.d/dev/errored.tfstate", "state push"),
    ],
)
def test_unmatched_keys_are_refused(key: str, hint: str) -> None:
    """Terraform's own folder and file names are neither components nor environments."""
    assert Map.default().names(key) is None
    assert unmatched(key).startswith("No pattern matches")
    assert hint in unmatched(key)


@pytest.mark.parametrize(
    ("key", "environment"),
    [
        ("terraform.tfstate", "default"),
        ("terraform.tfstate.d/dev/terraform.tfstate", "dev"),
        ("terraform.tfstate.d/Prod_EU/terraform.tfstate", "prod-eu"),
        ("env:/dev/terraform.tfstate", "dev"),
        ("dev", "dev"),
        ("default.tfstate", "default"),
        ("dev.tfstate", "dev"),
        ("errored.tfstate", None),
        ("prod/network/terraform.tfstate", None),
        ("network/terraform.tfstate.d/dev/terraform.tfstate", None),
        ("terraform.tfstate.d/dev/errored.tfstate", None),
        ("terraform.tfstate.d/terraform.tfstate", None),
        ("terraformXtfstate", "terraformxtfstate"),
    ],
)
def test_workspaces_of_a_configuration_become_environments(
    key: str, environment: str | None
) -> None:
    names = Map.of_workspaces("network").names(key)

    assert names == (None if environment is None else Names("network", environment))


def test_map_assigns_addresses(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text(
        'ignore = ["sandbox/**"]\n'
        '[[map]]\npattern = "{account}/{region}/{name}/{name}.tfstate"\n'
        'application = "shop"\ncomponent = "{name}"\nenvironment = "{account}-{region}"\n'
    )
    found = Map.read(path)

    assert found.names("prod/eu/db/db.tfstate") == Names("db", "prod-eu", "shop")
    assert found.names("prod/eu/db/other.tfstate") is None
    assert found.is_ignored("sandbox/a/b.tfstate")
    assert not found.is_ignored("prod/eu/db/db.tfstate")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[map]", "is not TOML"),
        ("maps = []", "A map does not support the key 'maps'"),
        ("map = 1", "A rule must start with [[map]]."),
        ("map = [1]", "A rule must start with [[map]]."),
        ('ignore = "a"', "ignore must be a list of patterns."),
        ("ignore = [1]", "ignore must be a list of patterns."),
        ("[[map]]\npattern = 1", "The values of a rule must be text."),
        ('[[map]]\ncomponent = "a"', "A rule must have a pattern."),
        ('[[map]]\npattern = "a"\nname = "b"', "A map does not support the key 'name'"),
        ('[[map]]\npattern = "{component}/x"', "does not set the environment"),
        ('[[map]]\npattern = "{1a}"', "{1a} is not a valid name."),
        (
            '[[map]]\npattern = "{component}"\nenvironment = "{stage}"',
            "The pattern '{component}' has no {stage}.",
        ),
    ],
)
def test_invalid_maps(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text)

    with pytest.raises(MapError) as error:
        Map.read(path)

    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_missing_map_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MapError, match="No such file"):
        Map.read(tmp_path / "map.toml")
