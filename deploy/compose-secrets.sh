#!/bin/sh
# Write the secrets of compose.yaml to three directories: the volumes of the database, of the table owner, and of the
# service. A value from .env in the environment takes precedence. The script generates each missing secret once.
#
#     deploy/compose-secrets.sh DATABASE OWNER SERVICE
set -eu
umask 022 # All users may read the files, but only containers that mount the volume can see them.

# secret FILE VALUE GENERATOR
secret() {
    case "${1##*/}=$2" in
    *_PASSWORD=*[!A-Za-z0-9]*) echo "${1##*/} in .env must consist of letters and digits" >&2 && exit 1 ;;
    esac
    if [ -n "$2" ]; then put "$1" "$2"; elif [ ! -s "$1" ]; then put "$1" "$("$3")"; fi
}

# Replace the file atomically, because a half-written key would make states unreadable.
put() { printf %s "$2" >"$1.new" && mv "$1.new" "$1"; }
# Use only letters and digits, because a URL contains the password.
password() { od -An -v -tx1 -N 32 /dev/urandom | tr -d ' \n'; }
key() { head -c 32 /dev/urandom | base64; }

secret "$1/POSTGRES_PASSWORD" "${POSTGRES_PASSWORD:-}" password
secret "$1/OWNER_PASSWORD" "${OWNER_PASSWORD:-}" password
secret "$1/SERVICE_PASSWORD" "${SERVICE_PASSWORD:-}" password
secret "$3/SECRET_KEY" "${SECRET_KEY:-}" password
secret "$3/STATE_ENCRYPTION_KEYS" "${STATE_ENCRYPTION_KEYS:-}" key
put "$2/DATABASE_URL" "postgres://infra_owner:$(cat "$1/OWNER_PASSWORD")@database:5432/infra"
put "$3/DATABASE_URL" "postgres://infra:$(cat "$1/SERVICE_PASSWORD")@database:5432/infra"
