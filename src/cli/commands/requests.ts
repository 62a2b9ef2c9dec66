// `localtunnels requests`, `replay` and `wait`: use the inspector of a running session, from another terminal or a script.

import type { Diff, Edit, ExchangeDetail, ExchangeRow, ReplayResult } from '../../exchange.ts'
import { diffLines } from '../captured/diff-lines.ts'
import { editableText, editOf } from '../captured/edited-request.ts'
import { saveFixture } from '../captured/fixture.ts'
import { InspectorSession } from '../captured/inspector-session.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandIo } from '../run.ts'
import { editText } from '../terminal/editor.ts'
import { formatBytes, formatDuration, visible, visibleJson } from '../terminal/format.ts'

interface Common {
  /** The process of the session. `undefined`: the last one started. */
  readonly pid: number | undefined
  readonly isJson: boolean
}

export interface RequestsSettings extends Common {
  readonly filter: string
  readonly limit: number
  readonly follows: boolean
}

export interface ReplaySettings extends Common {
  readonly id: string
  readonly times: number
  /** Whether to edit the request before it is sent. */
  readonly isEdited: boolean
  readonly isCompared: boolean
  /** Whether to sign it again. `undefined`: if its signature was valid. */
  readonly resign: boolean | undefined
}

export interface WaitSettings extends Common {
  readonly filter: string
  readonly timeoutMs: number
}

export interface FixtureSettings extends Common {
  readonly id: string
  readonly file: string
}

/** Lists requests. Resolves when the list is printed; with `follows`, at the end of the session. */
export async function requests(settings: RequestsSettings, io: CommandIo): Promise<void> {
  const session = InspectorSession.find(io.environment, settings.pid)
  const { filter, limit, follows, isJson } = settings
  const show = (row: ExchangeRow) => io.write(`${isJson ? visibleJson(row) : line(row)}\n`)
  const query = new URLSearchParams({ filter, limit: `${limit}` })
  const { exchanges } = await session.ask<{ exchanges: readonly ExchangeRow[] }>(
    `exchanges?${query.toString()}`,
  )
  // The newest request is on the last line, where users look first.
  const shown = new Set<string>()
  for (const row of exchanges.toReversed()) {
    // An open request gets a line when it is over.
    if (follows && row.state === 'open') continue
    shown.add(row.id)
    show(row)
  }
  if (!follows) return
  await session.follow(filter, io.stop, event => {
    if (event.type !== 'exchange' || event.exchange.state === 'open' || shown.has(event.exchange.id)) return
    shown.add(event.exchange.id)
    show(event.exchange)
  })
}

/** Replays a request. Resolves with the exit code: that of a failure if the response became an error. */
export async function replay(
  { id, times, isEdited, isCompared, resign, pid, isJson }: ReplaySettings,
  io: CommandIo,
): Promise<number> {
  const session = InspectorSession.find(io.environment, pid)
  // Once it is sent again, `latest` means the replay.
  const original = await session.ask<ExchangeDetail>(`exchanges/${encodeURIComponent(id)}`)
  const edit = isEdited ? await edited(session, original, io) : undefined
  const asked = { times, ...(edit && { edit }), ...(resign !== undefined && { resign }) }
  const { replays } = await session.ask<ReplayResult>(`exchanges/${original.id}/replay`, asked)
  for (const { exchange, verdict } of replays) {
    const diff = isCompared ? await session.ask<Diff>(`diff?a=${original.id}&b=${exchange.id}`) : undefined
    if (isJson) io.write(`${visibleJson({ verdict, exchange, ...(diff && { diff }) })}\n`)
    else {
      io.write(`${line(exchange)}  ${verdict}\n`)
      if (diff) for (const text of diffLines(diff)) io.write(`${text}\n`)
    }
  }
  return replays.some(({ verdict }) => verdict === 'regressed') ? EXIT.faultsFound : EXIT.ok
}

async function edited(session: InspectorSession, detail: ExchangeDetail, io: CommandIo): Promise<Edit> {
  const { body } = detail.request ?? {}
  const bytes = await session.bytes(`exchanges/${detail.id}/request.body`)
  const isWhole = body?.keptBytes === body?.totalBytes && body?.encoding === ''
  const text = isWhole ? textOf(bytes) : undefined
  return editOf(await editText(editableText(detail, text), io.environment), text)
}

/** Returns text. `undefined` if the bytes are not text. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

export async function saveCaptured({ id, file, pid, isJson }: FixtureSettings, io: CommandIo): Promise<void> {
  const detail = await saveFixture(InspectorSession.find(io.environment, pid), id, file)
  io.write(isJson ? `${visibleJson({ file, exchange: detail.id })}\n` : `${file}: ${line(detail)}\n`)
}

/** Waits for a request. Rejects with `WAIT_TIMEOUT` if none came. */
export async function wait({ filter, timeoutMs, pid, isJson }: WaitSettings, io: CommandIo): Promise<void> {
  const session = InspectorSession.find(io.environment, pid)
  const { exchange } = await session.ask<{ exchange: ExchangeRow }>('wait', { filter, timeoutMs })
  io.write(`${isJson ? visibleJson(exchange) : line(exchange)}\n`)
}

/** Returns a line: `42  12:01:07  POST   200   18 ms   4.1 kB  /hooks`. */
function line({
  id,
  startedAt,
  method,
  kind,
  status,
  state,
  path,
  tunnel,
  times,
  responseBody,
  code,
}: ExchangeRow): string {
  const time = new Date(startedAt).toTimeString().slice(0, 8)
  const outcome = status > 0 ? `${status}` : state === 'open' ? '…' : '—'
  const took = times.totalMs === undefined ? '' : formatDuration(times.totalMs)
  const columns = [
    id.padStart(5),
    time,
    visible(method || kind).padEnd(7),
    outcome.padStart(3),
    took.padStart(8),
    formatBytes(responseBody.totalBytes).padStart(8),
    visible(path || tunnel),
  ]
  return `${columns.join('  ')}${code === undefined ? '' : `  ${code}`}`
}
