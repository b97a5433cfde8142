"""Measure differences and resources of a state of 50 MB: ``python -m tools.bench.history``.

The benchmark measures the seconds of a complete request, and the peak memory of the server's
processes, on the database in ``DATABASE_URL``. The two versions differ in a tenth of 20,000
resources or, in the worst case, in all resources.
"""

from __future__ import annotations

import json
import statistics
import time
import uuid
from pathlib import Path

from tests.support.server import LiveServer, live_server
from tools.bench.figures import remark

RESOURCES = 20_000


def state(serial: int, *, changed_every: int, count: int = RESOURCES) -> bytes:
    """Return a state with 2.5 KB per resource; two serials differ in every n-th resource."""
    resources = []
    for number in range(count):
        revision = serial if number % changed_every == 0 else 0
        attributes = {
            "id": f"i-{number:016x}",
            "arn": f"arn:aws:ec2:eu-west-1:{number:012d}:instance/i-{number:016x}",
            "password": f"secret-{number}-{revision}",
            "user_data": f"echo {revision} " + "configuration " * 95,
            "tags": {f"tag-{t}": f"value {t} of {number}" for t in range(12)},
        }
        instance = {
            "index_key": number,
            "schema_version": 1,
            "attributes": attributes,
            "sensitive_attributes": [[{"type": "get_attr", "value": "password"}]],
            "dependencies": ["aws_vpc.main", "aws_subnet.main"],
        }
        resources.append(
            {
                "module": f'module.region["r{number % 7}"]',
                "mode": "managed",
                "type": "aws_instance",
                "name": f"node_{number}",
                "provider": 'provider["registry.terraform.io/hashicorp/aws"]',
                "instances": [instance],
            }
        )
    document = {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": serial,
        "lineage": "bench",
        "outputs": {},
        "resources": resources,
    }
    return json.dumps(document, indent=2).encode()


def peak_mb(server: LiveServer) -> float:
    """Return the peak memory of the server's processes, in MB."""
    assert server._process is not None
    parent = server._process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    lines = [
        line
        for pid in children
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return max(int(line.split()[1]) / 1024 for line in lines)


def ten_megabytes(server: LiveServer, masked: str, everything: str) -> None:
    """Report the time to compare two versions of 10 MB, with and without masking secrets."""
    path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
    for serial in (1, 2):
        body = state(serial, changed_every=10, count=RESOURCES // 5)
        assert server.request("POST", path, body, token=masked).status == 200
    listed = json.loads(server.request("GET", "/api/v1/states", token=masked).body)
    page = f"/api/v1/states/{listed['states'][-1]['id']}/versions/2/diff"
    taken = {}
    for token in (masked, everything):
        times = []
        for _ in range(5):
            started = time.perf_counter()
            assert server.request("GET", page, token=token).status == 200
            times.append(time.perf_counter() - started)
        taken[token] = statistics.median(times)
    remark(
        f"A page of the difference between two versions of {len(body) / 1e6:.0f} MB, in which a "
        f"tenth of {RESOURCES // 5:,} resources changed, takes {taken[everything]:.2f} s with "
        f"secrets shown and {taken[masked]:.2f} s with secrets masked. To mask secrets, the "
        "service searches all other texts for each secret value."
    )


def main() -> None:
    with live_server(WEB_WORKERS="1") as server:
        writer = server.token("state:read", "state:write")
        everything = server.token("state:read", "state:secrets")
        ten_megabytes(server, writer, everything)

        def call(path: str, token: str) -> bytes:
            started = time.perf_counter()
            answer = server.request("GET", path, token=token)
            assert answer.status == 200, answer.body
            seconds = time.perf_counter() - started
            label = path.partition("?page_token")[0][51:]
            print(f"{label:30} {seconds:6.2f} s {len(answer.body) / 1e6:8.2f} MB answer")
            return answer.body

        for title, changed_every in (("a tenth differs", 10), ("all differ", 1)):
            path = f"/api/v1/state/{uuid.uuid4()}/env/{uuid.uuid4()}"
            for serial in (1, 2):
                body = state(serial, changed_every=changed_every)
                assert server.request("POST", path, body, token=writer).status == 200
            listed = json.loads(server.request("GET", "/api/v1/states", token=writer).body)
            root = f"/api/v1/states/{listed['states'][-1]['id']}"
            print(f"{title}: {len(body) / 1e6:.0f} MB, peak before {peak_mb(server):.0f} MB")
            for name, token in (("masked", writer), ("with secrets", everything)):
                print(name)
                first = json.loads(call(f"{root}/versions/2/diff", token))
                call(f"{root}/versions/2/diff?page_token={first['next_page_token']}", token)
                call(f"{root}/resources?page_size=100", token)
                call(f"{root}/outputs", token)
            started = time.perf_counter()
            restored = server.request(
                "POST",
                f"{root}/versions/1:restore",
                b"{}",
                token=writer,
                headers={"Content-Type": "application/json"},
            )
            assert restored.status == 200, restored.body
            print(f"{'restore':30} {time.perf_counter() - started:6.2f} s")
            print(f"peak after {peak_mb(server):.0f} MB\n")


if __name__ == "__main__":
    main()
