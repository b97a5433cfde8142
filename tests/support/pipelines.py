"""Run jobs of GitHub Actions and GitLab like their runners, from the YAML of a workflow.

It covers variables, expressions of one context, composite actions and templates of this repository,
and the shell of each platform. Other actions, such as checkout, are left out, and so are rules.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from tests.docs.conftest import readers
from tests.support.installation import ROOT

#: GitHub's shell of a step without ``shell``, and with ``shell: bash``.
_GITHUB_DEFAULT: Final = ("bash", "-e")
_GITHUB_BASH: Final = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
_MASK: Final = "::add-mask::"


class JobFailedError(Exception):
    """A step of a job failed; the message has its script and its output."""


class Pipeline:
    """A runner. ``values`` are the variables and secrets of the project.

    ``identity`` returns the platform's signed token for an audience. ``log`` is the output of all
    jobs, and ``masks`` are the values that it registered as secrets.
    """

    def __init__(
        self,
        directory: Path,
        values: dict[str, str],
        identity: Callable[[str], str] = str,
        **environment: str,
    ) -> None:
        self.directory, self.values, self.identity = directory, values, identity
        self.environment = {**readers(directory, {}), **environment}
        self.exported = directory / "github.env"
        self.exported.touch()
        self.log = ""

    @property
    def masks(self) -> list[str]:
        lines = self.log.splitlines()
        return [line.removeprefix(_MASK) for line in lines if line.startswith(_MASK)]

    def github(self, job: dict[str, Any], shell: tuple[str, ...] = ()) -> int:
        """Run the steps of a job; return the number of commands and actions of this repository."""
        done = 0
        for step in job["steps"]:
            given = {**job.get("env", {}), **step.get("env", {})}
            if "run" in step:
                self._github(step["run"], given, self.values, shell or _GITHUB_DEFAULT)
            elif "/deploy/ci/" in step["uses"]:
                self._action(step, given, shell)
            else:
                continue
            done += 1
        return done

    def _action(self, step: dict[str, Any], given: dict[str, str], shell: tuple[str, ...]) -> None:
        _owner, _repository, path = step["uses"].partition("@")[0].split("/", 2)
        action = yaml.safe_load((ROOT / path / "action.yml").read_text())
        inputs = _inputs(action["inputs"], step.get("with", {}))
        for inner in action["runs"]["steps"]:
            assert inner["shell"] == "bash"  # required in a composite action
            variables = {**given, **inner.get("env", {}), "GITHUB_ACTION_PATH": str(ROOT / path)}
            directory = _expressions(inner.get("working-directory", "."), inputs)
            self._github(inner["run"], variables, inputs, shell or _GITHUB_BASH, directory)

    def _github(
        self,
        script: str,
        given: dict[str, str],
        values: dict[str, str],
        shell: tuple[str, ...],
        directory: str = ".",
    ) -> None:
        exported = dict(line.split("=", 1) for line in self.exported.read_text().splitlines())
        variables = {name: _expressions(value, values) for name, value in given.items()}
        fixed = {
            "GITHUB_ENV": str(self.exported), "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "4711",
        }  # fmt: skip
        # The runner writes the script to a file.
        file = self.directory / "step.sh"
        file.write_text(script)
        self._run([*shell, str(file)], script, {**exported, **variables, **fixed}, directory)

    def gitlab(
        self, configuration: dict[str, Any], name: str, shell: tuple[str, ...] = ("sh", "-e")
    ) -> None:
        """Run ``before_script`` and ``script`` of a job, which share a shell."""
        jobs: dict[str, Any] = {}
        for included in configuration.get("include", ()):
            jobs = _merged(jobs, _template(ROOT / included["file"].lstrip("/"), included["inputs"]))
        jobs = _merged(jobs, configuration)
        job = jobs[name]
        if "extends" in job:
            job = _merged(jobs[job["extends"]], job)
        given = {**configuration.get("variables", {}), **job.get("variables", {})}
        expanded = {
            key: re.sub(r"\$(\w+)", lambda found: self.values[found[1]], value)
            for key, value in given.items()
        }
        for key, wanted in job.get("id_tokens", {}).items():
            expanded[key] = self.identity(wanted["aud"])
        script = "\n".join([*job.get("before_script", ()), *job["script"]])
        self._run([*shell, "-c", script], script, {**expanded, "CI": "true", "GITLAB_CI": "true"})

    def _run(
        self, command: list[str], script: str, variables: dict[str, str], directory: str = "."
    ) -> None:
        done = subprocess.run(
            command,
            cwd=self.directory / directory,
            env={**self.environment, **variables},
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=300,
        )
        self.log += done.stdout
        if done.returncode:
            raise JobFailedError(f"{script}\n{done.stdout}")


def _inputs(declared: dict[str, Any], given: dict[str, str]) -> dict[str, str]:
    """Return the values of inputs, as both platforms check them."""
    assert given.keys() <= declared.keys()
    values = {name: given.get(name, entry.get("default")) for name, entry in declared.items()}
    assert None not in values.values(), values
    return values


def _expressions(text: str, values: dict[str, str]) -> str:
    """Evaluate ``${{ inputs.a || inputs.b }}``, and ``vars`` and ``secrets``."""

    def value(found: re.Match[str]) -> str:
        alternatives = re.findall(r"(?:inputs|vars|secrets)\.(\w+)", found[1])
        return next(filter(None, (values[name] for name in alternatives)), "")

    return re.sub(r"\$\{\{ (.+?) \}\}", value, text)


def _template(file: Path, given: dict[str, str]) -> dict[str, Any]:
    """Return a template of GitLab, with its inputs in all strings."""
    header, body = yaml.safe_load_all(file.read_text())
    values = _inputs(header["spec"]["inputs"], given)

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: filled(value) for name, value in node.items()}
        if isinstance(node, list):
            return [filled(value) for value in node]
        return re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: values[found[1]], node)

    jobs: dict[str, Any] = filled(body)
    return jobs


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge maps like ``include`` and ``extends``; a list replaces a list."""
    both = {
        name: _merged(base[name], value)
        for name, value in over.items()
        if isinstance(value, dict) and isinstance(base.get(name), dict)
    }
    return {**base, **over, **both}
