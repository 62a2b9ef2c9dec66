// The keys of a session whose inspector runs: `i` opens its page, `r` replays the last request.

import { TunnelError } from '../../errors.ts'
import type { ExchangeRow, ReplayResult } from '../../exchange.ts'
import { InspectorSession } from '../captured/inspector-session.ts'
import type { Run } from '../run.ts'
import { visible } from '../terminal/format.ts'
import { listenForKeys } from '../terminal/keys.ts'
import { openInBrowser } from '../terminal/open.ts'

/** Requests that have an answer, and could be sent again. */
const LAST = new URLSearchParams({ filter: 'is:http,sse -is:refused -is:open', limit: '1' }).toString()

/**
 * Listens from now on, and says so. Without an inspector it only keeps what is typed off the screen; without a terminal it does
 * nothing. `page`: with its token, as it is then.
 */
export function offerKeys(
  { output, stop, terminal }: Run,
  page: () => string | undefined = () => undefined,
): void {
  if (terminal === undefined) return
  const notice = (code: string, message: string) => output.event({ type: 'notice', code, message })
  const open = async () => {
    const url = page()
    if (url === undefined) return
    if (!(await openInBrowser(url, process.platform)))
      notice('OPEN_FAILED', `No browser was opened: no program to open a URL was found. Open ${url}`)
  }
  let isReplaying = false
  const replay = async () => {
    // One at a time: a key that is held down comes thirty times a second.
    const url = page()
    if (isReplaying || url === undefined) return
    isReplaying = true
    try {
      output.block(`  ${await replayLast(InspectorSession.at(url))}\n`)
    } catch (error) {
      const { code, message } = error instanceof TunnelError ? error : new TunnelError('INTERNAL')
      notice(code, message)
    } finally {
      isReplaying = false
    }
  }
  const keys = { i: () => void open(), r: () => void replay(), '\r': () => output.block('') }
  if (listenForKeys(process.stdin, keys, stop) && page() !== undefined)
    output.block('  keys: i opens the inspector, r replays the last request\n')
}

/** `↻ POST /hooks  500 → 200  fixed`. */
async function replayLast(session: InspectorSession): Promise<string> {
  const { exchanges } = await session.ask<{ exchanges: readonly ExchangeRow[] }>(`exchanges?${LAST}`)
  const [last] = exchanges
  if (last === undefined) return 'There is no request to replay yet.'
  const { replays } = await session.ask<ReplayResult>(`exchanges/${last.id}/replay`, {})
  const { exchange, verdict } = replays[0]!
  const outcome = ({ status, code }: ExchangeRow) => (status > 0 ? `${status}` : (code ?? 'no answer'))
  return `↻ ${visible(last.method)} ${visible(last.path)}  ${outcome(last)} → ${outcome(exchange)}  ${verdict}`
}
