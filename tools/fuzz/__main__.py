"""``make fuzz``: run the full fuzz test (``python -m tools.fuzz [EXAMPLES] [SEED]``)."""

from __future__ import annotations

import secrets
import sys

from tests.support.server import live_server
from tools.fuzz import running


def main() -> None:
    """Run every phase and every check of schemathesis, and exit with its status."""
    examples = sys.argv[1] if len(sys.argv) > 1 else "200"
    seed = sys.argv[2] if len(sys.argv) > 2 else str(secrets.randbelow(2**31))
    with live_server(**running.UNLIMITED) as server:
        known = running.prepare(server)
        options = ("--max-examples", examples, "--seed", seed)
        code = running.run(known, sys.stdout, *options)
        if errors := running.server_errors(server):
            sys.exit("\n".join(errors))
    sys.exit(code)


if __name__ == "__main__":
    main()
