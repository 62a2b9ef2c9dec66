// `localtunnels token`: creates, lists and revokes tokens of a server in its file, while it runs.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatDuration as windowText } from '../../config/quantity.ts'
import { optionInvalid, type TunnelError } from '../../errors.ts'
import { addToken, rotateToken, withoutHash } from '../../kept-tokens.ts'
import { stateFolder } from '../../state-folder.ts'
import { SqliteTokens } from '../../stores/sqlite-tokens.ts'
import type { KeptToken, TokenScope, TokenStore } from '../../tokens.ts'
import type { CommandIo } from '../run.ts'
import { formatDuration, visible } from '../terminal/format.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface TokenSettings {
  readonly action: 'add' | 'list' | 'rotate' | 'revoke'
  readonly name: string
  /** The token file. `undefined`: that of the state folder. */
  readonly file: string | undefined
  /** The lifetime for `add`. `undefined`: until it is revoked. */
  readonly forMs: number | undefined
  readonly scope: TokenScope
  readonly isJson: boolean
}

/** Runs the command. Rejects with `OPTION_INVALID` for a name that exists or is invalid, and for an invalid scope. */
export function token(settings: TokenSettings, { environment, write, log }: CommandIo): void {
  const file = settings.file ?? tokensFile(environment)
  const store = new SqliteTokens(file)
  try {
    write(act(settings, store, file))
    const { action, isJson } = settings
    if (isJson || action === 'list') return
    if (action !== 'revoke') log('This is the only time that it is shown.\n')
    log(placeOf(file, store.isShared(), serviceFiles(SERVICE_STATE)))
  } finally {
    store.close()
  }
}

/** The folder in which services of systemd store their state. */
const SERVICE_STATE = '/var/lib'

/** Returns the path of the file and, if no server has it open, which other file the server may use. */
function placeOf(file: string, isShared: boolean, others: readonly string[]): string {
  if (isShared) return `The file is ${file}.\n`
  const elsewhere = others.filter(other => other !== file).map(other => `  --tokens-db ${other}\n`)
  const hint = elsewhere.length === 0 ? '' : `Services of this machine have these:\n${elsewhere.join('')}`
  return `The file is ${file}. No server has it open now; a server of another user has another file.\n${hint}`
}

/** Returns the token files of services: of the packaged unit, and of `localtunnels service install`. */
export function serviceFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .flatMap(name =>
        (name === 'localtunnels' ? [''] : [])
          .concat('localtunnels')
          .map(one => join(folder, name, one, 'tokens.db')),
      )
      .filter(file => existsSync(file))
  } catch {
    return []
  }
}

/** Returns the file of tokens, unless a flag names another. */
export function tokensFile(environment: Environment): string {
  const folder = stateFolder(environment)
  if (folder !== undefined) return join(folder, 'tokens.db')
  throw optionInvalid('There is no state folder that can be written: name a file with --tokens-db.')
}

function act(settings: TokenSettings, store: TokenStore, file: string): string {
  const { action, name, isJson } = settings
  switch (action) {
    case 'add':
      return shown({ name, token: addToken(store, settings), file }, isJson)
    case 'rotate': {
      const secret = rotateToken(store, name)
      if (secret === undefined) throw missing(name)
      return shown({ name, token: secret, file }, isJson)
    }
    case 'revoke':
      if (!store.remove(name)) throw missing(name)
      return isJson
        ? `${JSON.stringify({ revoked: name })}\n`
        : `The token ${name} stops working within a second.\n`
    case 'list':
      return isJson ? `${JSON.stringify(store.list().map(withoutHash))}\n` : table(store.list())
  }
}

/** Prints the secret to standard output, and all other text to standard error. */
function shown(
  made: { readonly name: string; readonly token: string; readonly file: string },
  isJson: boolean,
): string {
  return `${isJson ? JSON.stringify(made) : made.token}\n`
}

function missing(name: string): TunnelError {
  return optionInvalid(`There is no token called ${visible(name)}.`)
}

function table(tokens: readonly KeptToken[]): string {
  if (tokens.length === 0) return 'There is no token. Create one: localtunnels token add <name>\n'
  const now = Date.now()
  const rows = tokens.map(({ name, createdAtMs, lastUsedAtMs, expiresAtMs, scope }) => [
    name,
    `created ${formatDuration(now - createdAtMs)} ago`,
    lastUsedAtMs === undefined ? 'never used' : `used ${formatDuration(now - lastUsedAtMs)} ago`,
    expiresAtMs === undefined
      ? 'no expiry'
      : expiresAtMs > now
        ? `expires in ${formatDuration(expiresAtMs - now)}`
        : 'expired',
    scopeText(scope),
  ])
  const widths = [0, 1, 2, 3].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows
    .map(row => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}\n`)
    .join('')
}

function rateText({ rate }: TokenScope): string {
  return rate === undefined ? '' : `rate ${rate.limit}/${windowText(rate.windowMs)}`
}

function scopeText(scope: TokenScope): string {
  const parts = Object.entries(scope).map(([name, value]) =>
    value === true ? name : name === 'rate' ? rateText(scope) : `${name} ${String(value)}`,
  )
  return parts.length === 0 ? 'everything' : parts.join(', ')
}
