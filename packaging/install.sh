#!/bin/sh
# Installs the single executable of localtunnels for this machine, after its checksum was verified.
#
#   sh install.sh --from https://github.com/OWNER/REPOSITORY/releases/download/v0.1.0 [--to ~/.local/bin]
#
# --from is a folder of files that tools/binaries.ts built: https://…, or a path.
set -eu

from='' to="${HOME:-/usr/local}/.local/bin"
fail() { echo "error: $*" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --from) from=${2-}; shift 2 || fail '--from needs a value.' ;;
    --to) to=${2-}; shift 2 || fail '--to needs a value.' ;;
    *) fail "Unknown option $1. There are: --from, --to." ;;
  esac
done
[ -n "$from" ] || fail 'Say where the files are: --from https://… or --from a folder.'

case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=macos ;;
  *) fail "There is no executable for $(uname -s). Install with npm instead." ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=x64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "There is no executable for $(uname -m). Install with npm instead." ;;
esac
musl=''
# Where the loader of musl is and that of glibc is not.
if [ "$os" = linux ] && ls /lib/ld-musl-* >/dev/null 2>&1 && ! ls /lib*/ld-linux-* >/dev/null 2>&1; then musl=-musl; fi
name="localtunnels-$os-$arch$musl"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
get() {
  case $from in
    https://*) curl --fail --silent --show-error --location --proto '=https' --tlsv1.2 --output "$folder/$1" "$from/$1" ;;
    http://*) fail 'Files come by https or from a folder.' ;;
    *) cp "$from/$1" "$folder/$1" ;;
  esac
}
get SHA256SUMS || fail "There is no SHA256SUMS at $from."
get "$name" || fail "There is no $name at $from."

if command -v sha256sum >/dev/null 2>&1; then sum=$(sha256sum "$folder/$name"); else sum=$(shasum -a 256 "$folder/$name"); fi
wanted=$(awk -v name="$name" '$2 == name { print $1 }' "$folder/SHA256SUMS")
[ -n "$wanted" ] || fail "SHA256SUMS does not name $name."
[ "${sum%% *}" = "$wanted" ] || fail "The checksum of $name is not the one in SHA256SUMS: nothing was installed."

mkdir -p "$to"
chmod 755 "$folder/$name"
# A rename replaces a running program without harm; from another file system it is a copy first.
cp "$folder/$name" "$to/.localtunnels.new"
mv "$to/.localtunnels.new" "$to/localtunnels"
ln -sf localtunnels "$to/lt"
echo "Installed $("$to/localtunnels" --version) as $to/localtunnels."
case ":${PATH:-}:" in *":$to:"*) ;; *) echo "$to is not on PATH: add it, or give --to a folder that is." ;; esac
