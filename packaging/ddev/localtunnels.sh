#!/usr/bin/env bash
# `ddev share --provider=localtunnels`: copy this file to .ddev/share-providers/ of the project, and make it executable. It needs
# localtunnels on PATH: docs/installing.md.
#
# Your server comes from `localtunnels login`, or from TUNNEL_SERVER and TUNNEL_TOKEN. More flags:
# ddev share --provider=localtunnels --provider-args="--subdomain shop"
set -euo pipefail

command -v localtunnels >/dev/null || { echo 'localtunnels is not installed.' >&2; exit 1; }
# Several words, without what a shell would make of them, such as names of files for *.
IFS=$' \t\n' read -r -d '' -a args <<<"${DDEV_SHARE_ARGS:-}" || true
# DDEV reads the URL from the first line of stdout. What else there is to say goes to stderr.
exec localtunnels "$DDEV_LOCAL_URL" --quiet ${args[@]+"${args[@]}"}
