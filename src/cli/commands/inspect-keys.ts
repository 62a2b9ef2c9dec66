// The keys of a session on a terminal: for its URL, the inspector, and replays.

import { TunnelError } from '../../errors.ts'
import type { ExchangeRow, ReplayResult } from '../../exchange.ts'
import { InspectorSession } from '../captured/inspector-session.ts'
import type { OfferedKey } from '../output.ts'
import type { Run } from '../run.ts'
import { formatTime, visible } from '../terminal/format.ts'
import { listenForKeys } from '../terminal/keys.ts'
import { openInBrowser } from '../terminal/open.ts'
import { copyUrl, openUrl, showQr } from './offers.ts'

/** A filter for requests that have a response and can be sent again. */
const LAST = new URLSearchParams({ filter: 'is:http,sse -is:refused -is:open', limit: '1' }).toString()

/** The addresses of a session at the time of a key press. */
export interface Addresses {
  /** The public URL; the first one of several. */
  readonly url?: () => string | undefined
  readonly page?: () => string | undefined
}

type Deed = readonly [key: string, what: string, help: string, press: () => unknown]

/**
 * Listens for keys from now on, and shows them. Without an address, it only keeps typed text off the screen; without
 * a terminal it does nothing.
 */
export function offerKeys(run: Run, { url, page }: Addresses = {}): void {
  const { output, stop, terminal } = run
  if (terminal === undefined) return
  const notice = (code: string, message: string) => output.event({ type: 'notice', code, message })
  const open = async () => {
    const address = page?.()
    if (address !== undefined && !(await openInBrowser(address, process.platform)))
      notice('OPEN_FAILED', `No browser was opened: no program to open a URL was found. Open ${address}`)
  }
  let isReplaying = false
  const replay = async () => {
    // One at a time, because a key that is held down arrives thirty times a second.
    const address = page?.()
    if (isReplaying || address === undefined) return
    isReplaying = true
    try {
      const outcome = await replayLast(InspectorSession.at(address))
      output.block(`  ${formatTime(new Date())}  ${outcome}`)
    } catch (error) {
      const { code, message } = error instanceof TunnelError ? error : new TunnelError('INTERNAL')
      notice(code, message)
    } finally {
      isReplaying = false
    }
  }
  const known = url?.()
  const isWeb = known?.startsWith('http') ?? false
  const deeds: readonly Deed[] = [
    ...(isWeb
      ? [['o', 'open', 'opens the public URL in a browser', () => openUrl(url?.() ?? '', run)] as const]
      : []),
    ...(known === undefined
      ? []
      : [['c', 'copy', 'copies the public URL', () => copyUrl(url?.() ?? '', run)] as const]),
    ...(isWeb
      ? [['q', 'QR', 'draws the public URL as a QR code', () => showQr(url?.() ?? '', run)] as const]
      : []),
    ...(page?.() === undefined
      ? []
      : ([
          ['i', 'inspect', 'opens the inspector in a browser', open],
          ['r', 'replay', 'sends the last request again', replay],
        ] as const)),
  ]
  const help = () => {
    const lines = deeds.map(([key, , text]) => `  ${key}       ${text}`)
    output.block(
      [
        '',
        ...lines,
        '  Enter   leaves a blank line',
        '  Ctrl+C  ends it, when open requests are done',
        '',
      ].join('\n'),
    )
  }
  const isEmpty = deeds.length === 0
  const keys: Record<string, () => void> = { '\r': () => output.block('') }
  for (const [key, , , press] of deeds) keys[key] = () => void press()
  if (!isEmpty) keys.h = help
  const offered: readonly OfferedKey[] = [...deeds.map(([key, what]) => [key, what] as const), ['h', 'help']]
  if (listenForKeys(process.stdin, keys, stop) && !isEmpty) output.offer?.(offered)
}

/** Replays the last request. Returns `↻ POST /hooks  500 → 200  fixed`. */
async function replayLast(session: InspectorSession): Promise<string> {
  const { exchanges } = await session.ask<{ exchanges: readonly ExchangeRow[] }>(`exchanges?${LAST}`)
  const [last] = exchanges
  if (last === undefined) return 'There is no request to replay yet.'
  const { replays } = await session.ask<ReplayResult>(`exchanges/${last.id}/replay`, {})
  const { exchange, verdict } = replays[0]!
  const outcome = ({ status, code }: ExchangeRow) => (status > 0 ? `${status}` : (code ?? 'no response'))
  return `↻ ${visible(last.method)} ${visible(last.path)}  ${outcome(last)} → ${outcome(exchange)}  ${verdict}`
}
