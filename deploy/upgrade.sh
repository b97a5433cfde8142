#!/bin/sh
# Upgrade a systemd installation without downtime, as root. Without an argument, the script activates the release
# that contains this file. To go back, pass the directory of an earlier release. A failure before the switch leaves
# the installation unchanged.
#
#     /opt/infra-service-releases/1.1.0/deploy/upgrade.sh [RELEASE]
set -eu
export PIP_DISABLE_PIP_VERSION_CHECK=1

installed=/opt/infra-service    # a symbolic link to the running release
settings=/etc/infra-service.env
here=$(cd "$(dirname "$0")/.." && pwd -P)
new=$(cd "${1:-$here}" && pwd -P)

step() { printf '%s %s\n' "$(date +%T)" "$*"; }
fail() { printf 'upgrade: %s\n' "$*" >&2; exit 1; }
switch_to() { ln -sfn "$1" "$installed.new" && mv -T "$installed.new" "$installed"; }

[ -e "$installed/manage.py" ] || fail "$installed contains no installation. Install one first: docs/how-to/deploy.md"
[ -e "$new/manage.py" ] || fail "$new contains no release."
if [ ! -L "$installed" ]; then
    [ "$new" != "$(readlink -f "$installed")" ] || fail "$new is in use. Upgrade from another directory: docs/how-to/upgrade.md"
    before=${new%/*}/before
    [ ! -e "$before" ] || fail "$installed is a directory, and $before exists. Move one of them."
    mv "$installed" "$before"
    switch_to "$before"
fi
old=$(readlink -f "$installed")

# Detect the extras of the old release from its installed packages.
extras=$("$old/.venv/bin/python" - "$new/pyproject.toml" <<'PYTHON'
import re, sys, tomllib
from importlib.metadata import distributions

normal = lambda name: re.sub(r"[-_.]+", "-", name).lower()
installed = {normal(each.name) for each in distributions()}
extras = tomllib.load(open(sys.argv[1], "rb"))["project"]["optional-dependencies"]
for extra, requirements in extras.items():
    if all(normal(re.match(r"[\w.-]+", each)[0]) in installed for each in requirements):
        print(extra)
PYTHON
)
step "install $new with the extras: $(echo ${extras:-none})"
base=$("$old/.venv/bin/python" -c 'import sys; print(sys._base_executable)')
for part in run $(for extra in $extras; do echo "extra-$extra"; done); do
    make --no-print-directory -C "$new" -f "$here/Makefile" PYTHON="$base" ".venv/$part"
done

if [ "$new" = "$here" ]; then
    step "check the settings"
    (cd "$new" && .venv/bin/python manage.py --env-file "$settings" check --deploy --database default)
fi

for file in "$new"/docs/how-to/infra-*.service "$new"/docs/how-to/infra-*.timer "$new"/docs/how-to/infra-*.socket; do
    unit=/etc/systemd/system/${file##*/}
    if [ -e "$unit" ] && ! cmp -s "$file" "$unit"; then
        step "note: $unit differs from $file"
    fi
done

# Processes of the old release still load their own files, because they use the release directory, not the link.
step "switch $installed to $new, and migrate as the owner"
switch_to "$new"
systemctl start infra-migrate || { switch_to "$old"; fail "The migration failed: journalctl -u infra-migrate"; }

for unit in $(systemctl list-units --plain --no-legend --state=active 'infra-service@*.service' | cut -d' ' -f1); do
    port=${unit#infra-service@}
    address=$(sed -n 's/^BIND=//p' "$settings" | tail -n 1 | tr -d "\"'") # systemd removes quotes
    address=${address:-127.0.0.1:${port%.service}}
    step "restart $unit"
    # Do not run the migrations again, because they would prolong the restart.
    systemctl restart --job-mode=ignore-requirements "$unit"
    tries=0
    until curl -sf --max-time 5 -o /dev/null "http://$address/readyz"; do
        tries=$((tries + 1))
        [ $tries -lt 120 ] || fail "$unit is not ready: journalctl -u $unit. To go back: $0 $old"
        sleep 1
    done
done

step "restart the running index, webhook, collector and timer units"
# As patterns, because systemctl fails for the name of a unit that is not installed.
systemctl try-restart 'infra-index*' 'infra-webhooks*' 'infra-collector*' 'infra-*.timer'
step "$installed is $new"
