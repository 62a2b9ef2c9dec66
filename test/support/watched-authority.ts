// Stands between an ACME client and its authority: counts certificates, and holds one exchange up.

import type { Pebble } from './pebble.ts'
import { deferred } from './within.ts'

export interface WatchedAuthority extends AsyncDisposable {
  readonly directory: string
  /** The certificates that the authority has issued, by their URLs. */
  readonly certificates: ReadonlySet<string>
  /** How many requests came. */
  readonly count: number
  /**
   * Holds exchange `number` (from 1, counted from now) up for ever: its request before the authority sees it, or its answer.
   * Resolves when it is held.
   */
  hold(number: number, what: 'request' | 'answer'): Promise<void>
  /** No exchange is held from now on. */
  release(): void
}

export function watchAuthority(pebble: Pebble): WatchedAuthority {
  const certificates = new Set<string>()
  const never = new Promise<never>(() => {})
  let count = 0
  let held: { at: number; what: string; reached: () => void } | undefined
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: pebble.identity,
    async fetch(request) {
      const { pathname, host } = new URL(request.url)
      const hold = held?.at === ++count ? held : undefined
      if (hold?.what === 'request') {
        hold.reached()
        return never
      }
      const headers = new Headers(request.headers)
      // Its URLs lead here too: it makes them of this.
      headers.set('host', host)
      const body = request.method === 'POST' ? await request.text() : null
      const url = `https://localhost:${pebble.port}${pathname}`
      const answer = await fetch(url, { method: request.method, headers, body, tls: { ca: pebble.ca } })
      const text = await answer.text()
      if (text.startsWith('{')) {
        const { certificate } = JSON.parse(text)
        if (typeof certificate === 'string') certificates.add(certificate)
      }
      if (hold?.what === 'answer') {
        hold.reached()
        return never
      }
      const sent = new Headers(answer.headers)
      for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) sent.delete(name)
      return new Response(request.method === 'HEAD' ? null : text, { status: answer.status, headers: sent })
    },
  })
  return {
    directory: `https://localhost:${server.port}/dir`,
    certificates,
    get count() {
      return count
    },
    hold(number, what) {
      const { promise, resolve } = deferred()
      held = { at: count + number, what, reached: resolve }
      return promise
    },
    release() {
      held = undefined
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}
