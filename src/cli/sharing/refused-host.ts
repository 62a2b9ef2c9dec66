// Finds responses that may be a dev server's refusal of the public host. Separate from `dev-server.ts`, which loads
// an HTTP client.

import type { TunnelClientEvents } from '../../client/options.ts'

const REFUSALS: ReadonlySet<number> = new Set([400, 403])
/** The maximum number of suspicious responses that are checked; after that they count as the app's own. */
const MAX_ASKED = 3

/** The facts about a response that a visitor got. */
export interface Seen {
  readonly status: number
  readonly path: string
  readonly error?: string
}

/** Whether a response may be a refusal of the host, so that the app should be checked. */
export function looksRefused({ status, path, error }: Pick<Seen, 'status'> & Partial<Seen>): boolean {
  // Next refuses the WebSocket of its development page with one word that is not HTTP.
  if (error === 'ORIGIN_INVALID') return path?.startsWith('/_next/') ?? false
  return !error?.startsWith('ORIGIN_') && REFUSALS.has(status)
}

/** The client, whose events report the responses that visitors get. */
interface Answers {
  on(event: 'response', listener: (answer: TunnelClientEvents['response']) => void): unknown
  getTunnelUrl(): string
}

/** Checks responses that look refused. `say` gets the fix, once. `origin`: the current URL of the app. */
export function explainRefusals(
  client: Answers,
  origin: () => string | undefined,
  say: (message: string) => void,
): void {
  let asked = 0
  const explain = async (where: string, seen: Seen) => {
    const { explainRefusal } = await import('./dev-server.ts')
    const message = await explainRefusal(where, client.getTunnelUrl(), seen)
    if (message === undefined || asked > MAX_ASKED) return
    asked = MAX_ASKED + 1
    say(message)
  }
  client.on('response', answer => {
    if (!looksRefused(answer) || asked >= MAX_ASKED) return
    const where = origin()
    if (where === undefined) return
    asked++
    void explain(where, answer)
  })
}
