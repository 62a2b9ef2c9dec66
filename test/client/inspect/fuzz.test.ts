// Requests made from the OpenAPI document of the inspector, and broken in all the ways that it allows: each has an answer that says what
// is wrong, and none breaks anything.

import { expect, test } from 'bun:test'
import { OPEN_API } from '../../../src/parts/inspect/open-api.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { OddRequests } from '../../support/odd-requests.ts'
import { FUZZ, Random } from '../../support/random.ts'
import { startTunnel } from '../../support/tunnel.ts'

const ROUNDS = 1_500 * FUZZ
const SEED = Number(process.env.LT_SEED ?? 1)
/** Longer waits and streams of events are given up. */
const PATIENCE_MS = 20
const WORDS = [
  // What is needed most.
  ...Array.from({ length: 30 }, () => 'latest'),
  // A nonce.
  ...Array.from({ length: 10 }, () => 'ab'.repeat(32)),
  ...['1', '2', '3', 'GET', 'POST', '/hooks', '/a?b=c', 'body:paid', 'status:2xx is:done', '-frame:x'],
  ...[
    'header:"x-mode: live"',
    'constructor:x',
    'curl',
    'har',
    'http',
    'bun-test',
    'Host',
    'app.localhost',
    'cGFpZA==',
  ],
]

test(
  'no request that the schema describes, or nearly describes, is an inner error',
  async () => {
    const requests = new OddRequests(OPEN_API as object, new Random(SEED), WORDS)
    await using tunnel = await startTunnel({
      fetch: async request => new Response(`got ${await request.text()}`),
      inspect: { maxExchanges: 50, rate: 0 },
    })
    const faults: string[] = []
    tunnel.client.on('error', error => faults.push(String(error)))
    const { base, token } = new InspectorApi(tunnel.client)
    const seen = new Map<string, Set<number>>()
    for (let round = 0; round < ROUNDS; round++) {
      // There is always something to ask about.
      if (round % 5 === 0)
        await (
          await fetch(`http://127.0.0.1:${tunnel.port}/hooks?${round}`, {
            method: round % 10 === 0 ? 'POST' : 'GET',
            headers: { host: tunnel.host, 'x-mode': 'live' },
            ...(round % 10 === 0 && { body: 'paid' }),
          })
        ).text()
      const { operation, target, method, headers, body } = requests.next()
      const isLong = /^\/(?:wait|events)/.test(target)
      const giveUp = new AbortController()
      const patience = isLong ? setTimeout(() => giveUp.abort(), PATIENCE_MS) : undefined
      const asked = fetch(`${base}/api/v1${target}`, {
        method,
        headers: { ...headers, authorization: `Bearer ${token}` },
        signal: giveUp.signal,
        ...(body !== undefined && { body }),
      })
      const status = await asked
        .then(async answer => {
          const text = await answer.text()
          if (answer.status >= 500)
            throw new Error(`${method} ${target} ${body ?? ''}: ${answer.status} ${text}`)
          if (answer.status >= 400) expect(JSON.parse(text).error.code).toMatch(/^[A-Z0-9_]+$/)
          return answer.status
        })
        .catch(error => {
          if (giveUp.signal.aborted) return 200
          throw error
        })
      clearTimeout(patience)
      seen.set(operation, (seen.get(operation) ?? new Set()).add(status))
    }
    expect(faults).toEqual([])
    // It reached every operation, in good order, too.
    expect([...seen].filter(([, statuses]) => !statuses.has(200)).map(([operation]) => operation)).toEqual([])
    expect(seen.size).toBe(requests.count)
  },
  60_000 * FUZZ,
)
