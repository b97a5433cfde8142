#!/bin/sh
# Write a file for `kubectl create` with the namespace and both Secrets of deploy/chart, and with new keys. The database
# and the roles infra and infra_owner must exist. SERVICE_PASSWORD and OWNER_PASSWORD are the passwords of these roles, in
# this order, and consist of letters and digits.
#
#     deploy/secrets.sh HOST:PORT/DATABASE[?OPTIONS] secrets.yaml [NAMESPACE]
set -euC # -C: do not overwrite a file, because it may contain the only copy of a key.
umask 077

fail() { printf 'secrets: %s\n' "$*" >&2; exit 1; }

[ $# -ge 2 ] || fail "usage: deploy/secrets.sh HOST:PORT/DATABASE[?OPTIONS] FILE [NAMESPACE]"
for password in "${OWNER_PASSWORD:-}" "${SERVICE_PASSWORD:-}"; do
    case $password in '' | *[!A-Za-z0-9]*) fail "OWNER_PASSWORD and SERVICE_PASSWORD must consist of letters and digits." ;; esac
done
key=$(openssl rand -base64 48 | tr -d '\n')
encryption=$(openssl rand -base64 32)
cat >"$2" <<END
apiVersion: v1
kind: Namespace
metadata:
  name: ${3:-infra}
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: Secret
metadata: {name: infra-service, namespace: ${3:-infra}}
stringData:
  SECRET_KEY: "$key"
  STATE_ENCRYPTION_KEYS: "$encryption"
  DATABASE_URL: "postgres://infra:$SERVICE_PASSWORD@$1"
---
apiVersion: v1
kind: Secret
metadata: {name: infra-owner, namespace: ${3:-infra}}
stringData:
  DATABASE_URL: "postgres://infra_owner:$OWNER_PASSWORD@$1"
END
