// `localtunnels admin …`: the operator's commands for a running server, through its admin listener.

import { ERRORS, type ErrorCode, optionInvalid, TunnelError } from '../../errors.ts'
import { stateFolder } from '../../state-folder.ts'
import type { CommandIo } from '../run.ts'
import { type AdminAccess, keptAccess } from '../server/admin-listener.ts'
import { visibleJson, widthOf } from '../terminal/format.ts'

/** A request to the API. */
export interface AdminSettings {
  readonly url: string | undefined
  readonly token: string | undefined
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The path below `/api/v1`. */
  readonly path: string
  readonly body?: Readonly<Record<string, unknown>>
  /** The key of the list in the response, and its columns by heading. Without it, the response is one sentence. */
  readonly list?: string
  readonly columns?: Columns
  /** The text for an empty list. Default: a sentence that there are none. */
  readonly none?: string
  /** Returns the text after success. */
  readonly done?: (answer: Row) => string
  readonly isJson: boolean
  /** Whether to open the listener's page, signed in, in place of a request. */
  readonly isPage?: true
}

export type Row = Readonly<Record<string, unknown>>
/** The key of a row, or a function that returns the text of its cell. */
type Columns = Readonly<Record<string, string | ((row: Row) => unknown)>>

const TIMEOUT_MS = 15_000
/** The time limit in milliseconds for an upgrade, whose program gets 30 s to start. */
const UPGRADE_TIMEOUT_MS = 45_000

/** Runs the command. Rejects with the code of the API, `OPTION_INVALID` without a listener, or `SERVER_UNREACHABLE`. */
export async function admin(settings: AdminSettings, io: CommandIo): Promise<void> {
  const { environment, write } = io
  const access = accessOf(settings, environment)
  const answer = await ask(settings, access)
  if (settings.isPage === true) return openPage(access, settings.isJson, io)
  if (settings.isJson) return write(`${visibleJson(answer)}\n`)
  const { list, columns, none = 'None.', done } = settings
  if (list === undefined || columns === undefined) return write(`${plain(done?.(answer) ?? 'Done.')}\n`)
  const rows = answer[list]
  if (!Array.isArray(rows) || rows.length === 0)
    return write(answer.isKept === false ? `None are kept: give the server a store.\n` : `${none}\n`)
  write(tableOf(columns, rows))
}

/** Opens the page. The token is after `#`, which browsers never send, and which the page removes from the address. */
async function openPage(
  { url, token, siteUrl }: AdminAccess,
  isJson: boolean,
  { environment, write, log }: CommandIo,
): Promise<void> {
  const linkAt = (page: string) => `${page}/#${encodeURIComponent(token)}`
  const link = linkAt(url)
  const atSite = siteUrl && linkAt(siteUrl)
  write(`${isJson ? JSON.stringify({ url: link, ...(atSite && { siteUrl: atSite }) }) : link}\n`)
  if (atSite && !isJson) log(`If the proxy passes this path on: ${atSite}\n`)
  if (isJson || !process.stdout.isTTY) return
  const { openPrivately } = await import('../terminal/open.ts')
  if (await openPrivately(link, stateFolder(environment), environment)) log('Opened in the browser.\n')
}

function accessOf({ url, token }: AdminSettings, environment: CommandIo['environment']): AdminAccess {
  const kept = keptAccess(environment)
  const at = url ?? kept?.url
  const shown = token ?? (url === undefined || url === kept?.url ? kept?.token : undefined)
  if (at === undefined)
    throw optionInvalid(
      'No admin listener is known: give --url and --admin-token, or start the server here with --admin.',
    )
  if (!URL.canParse(at) || !/^https?:$/.test(new URL(at).protocol))
    throw optionInvalid(`--url "${at}" is not an http:// or https:// URL.`)
  if (shown === undefined || !/^[\x21-\x7e]+$/.test(shown))
    throw optionInvalid('Give the token of the admin listener: --admin-token, or TUNNEL_ADMIN_TOKEN.')
  return { url: at.replace(/\/+$/, ''), token: shown, ...(at === kept?.url && { siteUrl: kept.siteUrl }) }
}

async function ask({ method, path, body }: AdminSettings, { url, token }: AdminAccess): Promise<Row> {
  let answer: Response
  try {
    answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(path === '/upgrade' ? UPGRADE_TIMEOUT_MS : TIMEOUT_MS),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  } catch (cause) {
    throw new TunnelError('SERVER_UNREACHABLE', `No admin listener responds at ${url}.`, { cause })
  }
  const said: unknown = await answer.json().catch(() => undefined)
  const row: Row = typeof said === 'object' && said !== null ? { ...said } : {}
  if (answer.ok) return row
  const { error } = row
  const fault: Row = typeof error === 'object' && error !== null ? { ...error } : {}
  const code = typeof fault.code === 'string' && isCode(fault.code) ? fault.code : 'ADMIN_INVALID'
  // The message already ends with the next step.
  const detail =
    typeof fault.message === 'string' ? fault.message.replace(` ${ERRORS[code].action}`, '') : undefined
  throw new TunnelError(code, plain(detail ?? `The admin listener returned ${answer.status}.`))
}

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code)
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '–'
}

/** Removes control characters: names and reasons come from others, and must not control the terminal. */
function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '�')
}

function tableOf(columns: Columns, rows: readonly Row[]): string {
  const texts = Object.values(columns)
  const cells = rows.map(row =>
    texts.map(text => plain(textOf(typeof text === 'string' ? row[text] : text(row)))),
  )
  const all = [Object.keys(columns), ...cells]
  const widths = texts.map((_, column) => Math.max(...all.map(row => widthOf(row[column] ?? ''))))
  return all
    .map(row =>
      row
        .map((cell, column) => cell + ' '.repeat(widths[column]! - widthOf(cell)))
        .join('  ')
        .trimEnd(),
    )
    .map(line => `${line}\n`)
    .join('')
}
