// `localtunnels token`: tokens of a server, made, listed and taken back in its file, while it runs.

import { join } from 'node:path'
import { formatDuration as windowText } from '../../config/quantity.ts'
import { TunnelError } from '../../errors.ts'
import { addToken, rotateToken, withoutHash } from '../../server/kept-tokens.ts'
import { SqliteTokens } from '../../stores/sqlite-tokens.ts'
import type { KeptToken, TokenScope, TokenStore } from '../../tokens.ts'
import { stateFolder } from '../settings/state-folder.ts'
import { formatDuration, visible } from '../terminal/format.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface TokenSettings {
  readonly action: 'add' | 'list' | 'rotate' | 'revoke'
  readonly name: string
  /** The file; `undefined`: that of the state folder. */
  readonly file: string | undefined
  /** Of `add`: how long it works; `undefined`: until it is taken back. */
  readonly forMs: number | undefined
  readonly scope: TokenScope
  readonly isJson: boolean
}

export interface TokenDesk {
  readonly environment: Environment
  readonly write: (text: string) => void
}

/** Rejects with `OPTION_INVALID` for a name that there is already, or is not, and for a scope that cannot be used. */
export function token(settings: TokenSettings, { environment, write }: TokenDesk): void {
  const store = new SqliteTokens(settings.file ?? tokensFile(environment))
  try {
    write(act(settings, store))
  } finally {
    store.close()
  }
}

/** Where they are unless a flag says otherwise. */
export function tokensFile(environment: Environment): string {
  const folder = stateFolder(environment)
  if (folder !== undefined) return join(folder, 'tokens.db')
  throw new TunnelError(
    'OPTION_INVALID',
    'There is no state folder that can be written: name a file with --tokens-db.',
  )
}

function act(settings: TokenSettings, store: TokenStore): string {
  const { action, name, isJson } = settings
  switch (action) {
    case 'add':
      return shown(name, addToken(store, settings), isJson)
    case 'rotate': {
      const secret = rotateToken(store, name)
      if (secret === undefined) throw missing(name)
      return shown(name, secret, isJson)
    }
    case 'revoke':
      if (!store.remove(name)) throw missing(name)
      return isJson
        ? `${JSON.stringify({ revoked: name })}\n`
        : `${name} opens nothing any more, a second from now at the latest.\n`
    case 'list':
      return isJson ? `${JSON.stringify(store.list().map(withoutHash))}\n` : table(store.list())
  }
}

function shown(name: string, secret: string, isJson: boolean): string {
  return isJson
    ? `${JSON.stringify({ name, token: secret })}\n`
    : `${secret}\nThis is the only time that it is shown.\n`
}

function missing(name: string): TunnelError {
  return new TunnelError('OPTION_INVALID', `There is no token called ${visible(name)}.`)
}

function table(tokens: readonly KeptToken[]): string {
  if (tokens.length === 0) return 'There is none. Make one: localtunnels token add <name>\n'
  const now = Date.now()
  const rows = tokens.map(({ name, createdAtMs, lastUsedAtMs, expiresAtMs, scope }) => [
    name,
    `made ${formatDuration(now - createdAtMs)} ago`,
    lastUsedAtMs === undefined ? 'never used' : `used ${formatDuration(now - lastUsedAtMs)} ago`,
    expiresAtMs === undefined
      ? 'no end'
      : expiresAtMs > now
        ? `ends in ${formatDuration(expiresAtMs - now)}`
        : 'over',
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
