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

# Several words each, without what a shell would make of them, such as names of files for *.
IFS=$' \t\n' read -r -d '' -a command <<<"${LT_COMMAND:-}" || true
IFS=$' \t\n' read -r -d '' -a args <<<"${LT_ARGS:-}" || true
if [ ${#command[@]} = 0 ]; then
  # The code of this action's own tag, in a folder in which no settings and programs of the checked out project count.
  program="$(mktemp -d "${RUNNER_TEMP:-/tmp}/localtunnels-XXXXXX")"
  own="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
  cp -R "$own/bin" "$own/src" "$own/tools" "$own/package.json" "$own/bun.lock" "$program"
  case "$(bun --version 2>/dev/null || true)" in
    1.[4-9].* | 1.[1-9][0-9].* | [2-9].*) ;;
    *)
      (cd "$program" && npm install --prefix runtime --no-audit --no-fund bun@1.4.5) >"$log/install" 2>&1 ||
        fail "Bun could not be installed: $(tail -n 3 "$log/install" | tr '\n' ' ')"
      PATH="$program/runtime/node_modules/.bin:$PATH"
      ;;
  esac
  (cd "$program" && bun install --production --frozen-lockfile) >"$log/install" 2>&1 ||
    fail "It could not be installed: $(tail -n 3 "$log/install" | tr '\n' ' ')"
  command=("$program/bin/localtunnels.ts")
fi
# The shell in the background may not have made it when it is first read.
: >"$log/out"
nohup "${command[@]}" "$LT_TARGET" --quiet ${args[@]+"${args[@]}"} >"$log/out" 2>"$log/err" </dev/null &
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
