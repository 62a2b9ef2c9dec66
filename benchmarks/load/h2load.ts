// h2load of nghttp2: visitors by HTTP/2 over TLS. It counts answers and their status, and does not look at their bytes.

import { finish } from '../measure/children.ts'
import type { Endpoint } from '../peers/peer.ts'

export interface Http2Load {
  readonly connections: number
  /** Requests at once on each. */
  readonly streams: number
  readonly seconds: number
}

export interface Http2Rate {
  readonly rps: number
  /** Answers other than 2xx, and none. Per cent. */
  readonly failed: number
}

/** Makes a load of GET of `path`. Throws when more than 0.1 % were not answered with 2xx. */
export async function h2load(at: Endpoint, path: string, load: Http2Load): Promise<Http2Rate> {
  const { connections, streams, seconds } = load
  // Whole seconds, as `--duration` counts: fewer than two of them begin with the handshakes.
  const duration = Math.max(1, Math.round(seconds))
  const flags = ['-c', String(connections), '-m', String(streams), '-t', '1', '-D', String(duration)]
  const { stdout } = await finish(
    ['h2load', ...flags, '-H', `:authority: ${at.hostHeader}`, `https://localhost:${at.port}${path}`],
    { timeoutMs: (duration + 30) * 1_000 },
  )
  const [, rps] = /^finished in [^,]+, ([\d.]+) req\/s/m.exec(stdout) ?? []
  const [, sound, ...others] =
    /^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/m.exec(stdout)?.map(Number) ?? []
  const [, broken] = /(\d+) errored/.exec(stdout)?.map(Number) ?? []
  if (rps === undefined || sound === undefined || broken === undefined)
    throw new Error(`h2load: ${stdout.slice(-300)}`)
  const bad = others.reduce((sum, one) => sum + one, broken)
  const failed = (100 * bad) / Math.max(1, bad + sound)
  if (failed > 0.1) throw new Error(`h2load: ${bad} of ${bad + sound} requests failed`)
  return { rps: Number(rps), failed }
}
