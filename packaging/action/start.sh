#!/usr/bin/env bash
# Starts a tunnel that stays until the job is over, and tells the next steps its URL. Variables: see action.yml.
set -euo pipefail

fail() { echo "::error title=localtunnels::$*"; exit 1; }
log="$(mktemp -d)"
[ -z "${LT_SERVER:-}" ] || export TUNNEL_SERVER="$LT_SERVER"
[ -z "${LT_SUBDOMAIN:-}" ] || export TUNNEL_SUBDOMAIN="$LT_SUBDOMAIN"
if [ -n "${LT_AUDIENCE:-}" ]; then
  [ -z "${LT_TOKEN:-}" ] || fail 'Give token or audience, not both.'
  [ -n "${ACTIONS_ID_TOKEN_REQUEST_TOKEN:-}" ] || fail 'audience needs "permissions: id-token: write" in the job.'
  answer="$(curl --silent --show-error --fail --header "Authorization: bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
    "$ACTIONS_ID_TOKEN_REQUEST_URL&audience=$LT_AUDIENCE")" || fail 'GitHub gave no token for this job.'
  LT_TOKEN="$(sed -n 's/.*"value" *: *"\([^"]*\)".*/\1/p' <<<"$answer")"
  [ -n "$LT_TOKEN" ] || fail 'GitHub gave no token for this job.'
  echo "::add-mask::$LT_TOKEN"
fi
[ -z "${LT_TOKEN:-}" ] || export TUNNEL_TOKEN="$LT_TOKEN"

# The shell in the background may not have made it when it is first read.
: >"$log/out"
# shellcheck disable=SC2086 # several words each
nohup $LT_COMMAND "$LT_TARGET" --quiet ${LT_ARGS:-} >"$log/out" 2>"$log/err" </dev/null &
pid=$!
for _ in $(seq "${LT_WAIT_SECONDS:-60}0"); do
  url="$(head -n 1 "$log/out")"
  [ -z "$url" ] || break
  kill -0 "$pid" 2>/dev/null || fail "It ended: $(tail -n 3 "$log/err" | tr '\n' ' ')"
  sleep 0.1
done
[ -n "$url" ] || { kill "$pid"; fail "There was no URL within ${LT_WAIT_SECONDS:-60} s: $(tail -n 3 "$log/err" | tr '\n' ' ')"; }
{ echo "url=$url"; echo "pid=$pid"; } >>"$GITHUB_OUTPUT"
echo "### $url" >>"$GITHUB_STEP_SUMMARY"
echo "$url"
