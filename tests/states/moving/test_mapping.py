"""From keys to names: the usual patterns, a map, and what is wrong with one."""

from pathlib import Path

import pytest

from states.addresses import Names
from states.moving.mapping import Map, MapError


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
def test_the_usual_patterns(key: str, names: tuple[str, str]) -> None:
    component, environment = names

    assert Map.usual().names(key) == Names(component=component, environment=environment)


@pytest.mark.parametrize("key", ["network", "a/b/c/d.tfstate", "prod/network.json"])
def test_what_no_pattern_matches(key: str) -> None:
    assert Map.usual().names(key) is None


def test_a_map(tmp_path: Path) -> None:
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
    ("text", "told"),
    [
        ("[[map]", "is not TOML"),
        ("maps = []", "There is no 'maps' in a map"),
        ("map = 1", "A rule begins with [[map]]."),
        ("map = [1]", "A rule begins with [[map]]."),
        ('ignore = "a"', "ignore is a list of patterns."),
        ("ignore = [1]", "ignore is a list of patterns."),
        ("[[map]]\npattern = 1", "What a rule says is text."),
        ('[[map]]\ncomponent = "a"', "A rule has a pattern."),
        ('[[map]]\npattern = "a"\nname = "b"', "There is no 'name' in a map"),
        ('[[map]]\npattern = "{component}/x"', "no environment follows"),
        ('[[map]]\npattern = "{1a}"', "{1a} is no name."),
        (
            '[[map]]\npattern = "{component}"\nenvironment = "{stage}"',
            "There is no {stage} in '{component}'.",
        ),
    ],
)
def test_what_is_wrong_with_a_map(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text)

    with pytest.raises(MapError) as error:
        Map.read(path)

    assert str(error.value).startswith(str(path))
    assert told in str(error.value)


def test_a_map_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MapError, match="No such file"):
        Map.read(tmp_path / "map.toml")
