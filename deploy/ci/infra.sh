# Functions for pipelines, in POSIX sh. They require curl 7.76 and jq 1.6 or newer.
# curl reads secrets from its standard input, because its arguments are visible to other processes.

infra_fail() {
    printf '%s%s\n' "${GITHUB_ACTIONS:+::error::}" "$1" >&2
    return 1
}

# GitHub hides a registered value in all later output of the job.
infra_mask() {
    if [ "${GITHUB_ACTIONS:-}" = true ] && [ -n "$1" ]; then printf '::add-mask::%s\n' "$1"; fi
}

# Print a field of a JSON object, or nothing if the field is missing or the text is not an object.
infra_field() {
    printf %s "$1" | jq -r "$2 // \"\"" 2>/dev/null || :
}

# Send a request and print the body of the response. The arguments are a URL and arguments of curl. The
# standard input contains options of curl. curl retries after 429 and 5xx, and obeys Retry-After.
infra_request() (
    set +x
    body=$(mktemp) || exit 1
    trap 'rm -f "$body"' EXIT
    status=$(curl --config - --silent --show-error --output "$body" --write-out '%{http_code}' \
        --connect-timeout 10 --max-time 60 --retry 6 --retry-max-time 120 --retry-connrefused "$@") ||
        { infra_fail "No response from ${1%%\?*}."; exit 1; }
    case $status in
    2??) cat "$body" ;;
    *)
        reason=$(jq -r '.error_description // .error.message // ""' "$body" 2>/dev/null | tr -d '\r\n' | cut -c 1-500)
        infra_fail "${1%%\?*} responded with $status. $reason"
        ;;
    esac
)

# Send a request with the token that Terraform uses.
infra_get() (
    set +x
    printf 'header = "Authorization: Bearer %s"\n' "$TF_HTTP_PASSWORD" | infra_request "$@"
)

# On GitHub Actions, set INFRA_ID_TOKEN to a signed token of the job for an audience.
infra_github_id_token() {
    set +x
    if [ -z "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ]; then
        infra_fail "The job cannot request an identity token. Add 'id-token: write' to its permissions.\
 Pull requests from forks cannot get this permission." || return 1
    fi
    infra_answer=$(printf 'header = "Authorization: Bearer %s"\n' "$ACTIONS_ID_TOKEN_REQUEST_TOKEN" |
        infra_request "$ACTIONS_ID_TOKEN_REQUEST_URL" --get --data-urlencode "audience=$1") || return 1
    INFRA_ID_TOKEN=$(infra_field "$infra_answer" .value)
    infra_mask "$INFRA_ID_TOKEN"
}

# Exchange the platform's token, INFRA_ID_TOKEN, for an access token, and set TF_HTTP_*. INFRA_URL is the
# address of the service, INFRA_POLICY is the trust policy, and INFRA_STATE is the state (payments/live or
# shop/payments/live). INFRA_TTL is the lifetime in seconds. The default lifetime is an hour, or the
# policy's maximum if that is shorter.
infra_token() {
    infra_options=$-
    set +x # a trace would print the secrets
    case ${INFRA_STATE:-} in
    *[!A-Za-z0-9._/-]*) false ;;
    ?*/?*) ;;
    *) false ;;
    esac || infra_fail "The state is not component/environment or application/component/environment." || return 1
    case ${INFRA_ID_TOKEN:-} in
    '' | *[!A-Za-z0-9._-]*) infra_fail "The platform provided no signed identity token." || return 1 ;;
    esac
    infra_answer=$(printf 'data = "subject_token=%s"\n' "$INFRA_ID_TOKEN" |
        infra_request "${INFRA_URL%/}/v1/oauth/token" \
            --data-urlencode "client_id=$INFRA_POLICY" --data-urlencode "ttl=${INFRA_TTL:-}" \
            --data grant_type=urn:ietf:params:oauth:grant-type:token-exchange \
            --data subject_token_type=urn:ietf:params:oauth:token-type:jwt) || return 1
    TF_HTTP_PASSWORD=$(infra_field "$infra_answer" .access_token)
    case $TF_HTTP_PASSWORD in
    *[!A-Za-z0-9_]*) false ;;
    iss_*) ;;
    *) false ;;
    esac ||
        infra_fail "${INFRA_URL%/}/v1/oauth/token responded without a token. Check the address of the service." || return 1
    infra_mask "$TF_HTTP_PASSWORD"
    printf 'Token for %s: %s, expires in %s seconds.\n' "$INFRA_STATE" \
        "$(infra_field "$infra_answer" .scope)" "$(infra_field "$infra_answer" .expires_in)"
    unset infra_answer INFRA_ID_TOKEN # the platform's token can be exchanged only once
    TF_HTTP_ADDRESS=${INFRA_URL%/}/api/v1/state/at/$INFRA_STATE
    TF_HTTP_USERNAME=token TF_HTTP_LOCK_ADDRESS=$TF_HTTP_ADDRESS TF_HTTP_UNLOCK_ADDRESS=$TF_HTTP_ADDRESS
    export TF_HTTP_USERNAME TF_HTTP_PASSWORD TF_HTTP_ADDRESS TF_HTTP_LOCK_ADDRESS TF_HTTP_UNLOCK_ADDRESS
    case $infra_options in *x*) set -x ;; esac
}

# Record the provider and module versions of the working directory with the last version of the state that
# this job has stored. The service adds the commit and the run from the platform's token.
infra_facts() (
    set +x
    service=${TF_HTTP_ADDRESS%%/api/v1/state/at/*}
    place=${TF_HTTP_ADDRESS#*/api/v1/state/at/}
    environment=${place##*/} component=${place%/*} application='IS NULL'
    case $component in */*) application="= '${component%/*}'" component=${component##*/} ;; esac
    caller=$(infra_get "$service/v1/whoami") || exit 1
    found=$(infra_get "$service/api/v1/states" --get --data-urlencode \
        "filter=field['component'] = '$component' AND field['environment'] = '$environment' AND field['application'] $application") || exit 1
    state=$(infra_field "$found" '.states[0].id')
    [ -n "$state" ] ||
        infra_fail "The service has no state at $place. Check that the configuration has 'backend \"http\" {}', and that the names are current." || exit 1
    versions=$(infra_get "$service/api/v1/states/$state/versions?page_size=100") || exit 1
    version=$(printf %s "$versions" | jq -r --arg token "$(infra_field "$caller" .caller.token_id)" \
        'first(.versions[] | select(.token_id == $token)).number')
    [ -n "$version" ] || { echo "This job has stored no version of $place, so there are no facts to record."; exit 0; }
    # terraform init writes both files if the configuration has providers and modules.
    lock=.terraform.lock.hcl modules=${TF_DATA_DIR:-.terraform}/modules/modules.json
    [ -f "$lock" ] || lock=/dev/null
    [ -f "$modules" ] || modules=/dev/null
    facts=$(mktemp) || exit 1
    trap 'rm -f "$facts"' EXIT
    jq -n --rawfile lock "$lock" --rawfile modules "$modules" '{facts: {lock_file: $lock, modules_file: $modules}}' >"$facts" &&
        infra_get "$service/api/v1/states/$state/versions/$version/facts" --request PUT \
            --header 'Content-Type: application/json' --data-binary "@$facts" >/dev/null &&
        echo "Recorded facts of $place with version $version."
)
