// h2load of nghttp2: visitors by HTTP/2 over TLS. It counts answers, their status and how many bytes they
// have; what these are is compared once before and once behind it.

import { connect } from 'node:http2'
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
  readonly ok: number
  /** Answers other than 2xx, and none. Per cent. */
  readonly failed: number
}

/** Makes a load of GET of `path`. Throws when more than 0.1 % were not answered with 2xx, or bytes were others. */
export async function h2load(
  at: Endpoint,
  path: string,
  answer: Uint8Array,
  load: Http2Load,
): Promise<Http2Rate> {
  await compare(at, path, answer)
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
  const [, bytes] = /\((\d+)\) data$/m.exec(stdout)?.map(Number) ?? []
  if (rps === undefined || sound === undefined || broken === undefined || bytes === undefined)
    throw new Error(`h2load: ${stdout.slice(-300)}`)
  const bad = others.reduce((sum, one) => sum + one, broken)
  const failed = (100 * bad) / Math.max(1, bad + sound)
  if (failed > 0.1) throw new Error(`h2load: ${bad} of ${bad + sound} requests failed`)
  // What is under way at the end has a status, or a part of its bytes.
  const [least, most] = [sound - connections * streams, sound + connections * streams]
  if (bytes < least * answer.length || bytes > most * answer.length)
    throw new Error(`h2load: ${bytes} bytes in ${sound} answers of ${answer.length}`)
  await compare(at, path, answer)
  return { rps: Number(rps), ok: sound, failed }
}

/** One answer, byte for byte. */
async function compare(at: Endpoint, path: string, answer: Uint8Array): Promise<void> {
  const session = connect(`https://localhost:${at.port}`, { rejectUnauthorized: false })
  try {
    const stream = session.request({ ':path': path, ':authority': at.hostHeader })
    const failed = new Promise<never>((_, reject) => session.on('error', reject))
    const came = Buffer.concat(await Promise.race([Array.fromAsync(stream), failed]))
    if (!came.equals(answer)) throw new Error(`wrong bytes in an answer by HTTP/2: ${came.length}`)
  } finally {
    session.close()
  }
}
