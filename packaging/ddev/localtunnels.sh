#!/usr/bin/env bash
# `ddev share --provider=localtunnels`: copy this file to .ddev/share-providers/ of the project, and make it executable.
#
# Your server comes from `localtunnels login`, or from TUNNEL_SERVER and TUNNEL_TOKEN. More flags:
# ddev share --provider=localtunnels --provider-args="--subdomain shop"
set -euo pipefail

if command -v localtunnels >/dev/null 2>&1; then command=(localtunnels); else command=(npx --yes localtunnels); fi
# DDEV reads the URL from the first line of stdout. What else there is to say goes to stderr.
# shellcheck disable=SC2086 # several words
exec "${command[@]}" "$DDEV_LOCAL_URL" --quiet ${DDEV_SHARE_ARGS:-}
