#!/usr/bin/env sh
':' + //; case ${HOME-}:${XDG_CACHE_HOME-/} in /*:/*) ;; *) export BUN_RUNTIME_TRANSPILER_CACHE_PATH=0 ;; esac
  ':' + //; if command -v bun >/dev/null 2>&1; then exec bun --use-system-ca --no-env-file --config=/dev/null --tsconfig-override=/dev/null "$0" "$@"; fi
  ':' + //; if command -v node >/dev/null 2>&1; then exec node "$0" "$@"; fi
  ':' + //; echo 'error RUNTIME_UNSUPPORTED: Neither bun nor node is on PATH. Install Bun from https://bun.sh or Node 20 or newer.' >&2
  ':' + //; exit 2
  ''

// A program in two languages: sh reads the lines above, Bun and Node the rest. Only options at the start keep Bun from
// reading `.env`, `bunfig.toml` and `tsconfig.json` of the current folder: docs/decisions/030-project-folders.md. With a
// HOME or XDG_CACHE_HOME that is empty or relative Bun would also keep compiled code there, and run what it finds.
import { VERSION } from '../src/version.ts'

const argv = process.argv.slice(2)

if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) console.log(VERSION)
else {
  const { leaveFolderOut } = await import('../src/cli/settings/folder-variables.ts')
  await leaveFolderOut()
  // Not before: what is loaded may look at the environment.
  const { main } = await import('../src/cli/main.ts')
  await main(argv)
}
