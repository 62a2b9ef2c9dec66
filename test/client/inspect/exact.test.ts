// What was captured is what both sides saw, written down by ends that share no code with us: none missing, none mixed up.
// LT_FUZZ=N makes N times as many exchanges; LT_FUZZ=40 makes 10,000.

import { expect, test } from 'bun:test'
import type { ExchangeDetail, Frame } from '../../../src/exchange.ts'
import { ExactApp, type Saw, visit } from '../../support/exact-ends.ts'
import { type Plan, planOf } from '../../support/exact-plans.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { FUZZ } from '../../support/random.ts'
import { startTunnel } from '../../support/tunnel.ts'

const COUNT = 250 * FUZZ
const VISITORS = 12
const MAX_BODY = 200_000
const SEED = Number(process.env.LT_SEED ?? 1)

test(
  `${COUNT} random exchanges are captured exactly`,
  async () => {
    const plans = Array.from({ length: COUNT }, (_, id) => planOf(id, SEED, 'app.localhost'))
    const app = new ExactApp(plans)
    const port = await app.listen()
    await using tunnel = await startTunnel({
      port,
      host: '127.0.0.1',
      inspect: {
        memory: 2 ** 31,
        maxBody: MAX_BODY,
        maxExchanges: 4 * COUNT,
        maxFrames: 40 * COUNT,
        rate: 0,
      },
    })
    const api = new InspectorApi(tunnel.client)
    // Each visitor has its own, several on a connection.
    const answers = new Map<number, Saw>()
    const groups = Array.from({ length: VISITORS }, (_, visitor) =>
      plans.filter(({ id }) => id % VISITORS === visitor),
    )
    await Promise.all(
      groups.map(async group => {
        for (const answer of await visit(tunnel.port, group)) answers.set(answer.id, answer)
      }),
    )
    for (;;) {
      const { json } = await api.ask('exchanges?filter=is:open&limit=1')
      if (json.exchanges.length === 0) break
      await Bun.sleep(20)
    }
    const { json: session } = await api.ask('session')
    expect(session.dropped).toEqual({ exchanges: 0, bytes: 0, unsampled: 0 })
    const details = await allOf(api)
    app.close()

    // None is missing, and none is there twice: one for each request that the app saw, in the order in which it saw them.
    const captured = Map.groupBy(details, ({ request }) =>
      Number(request?.fields.find(({ name }) => name === 'X-Id')?.value ?? -1),
    )
    const seen = Map.groupBy(app.requests, ({ id }) => id)
    for (const { path, isRefused } of captured.get(-1) ?? []) {
      expect(isRefused).toBe(true)
      // Refused by the server for what an end did.
      expect(plans[Number(/^\/x\/(\d+)/.exec(path)?.[1])]?.abort).not.toBe('none')
    }
    for (const plan of plans) {
      const [rows, requests] = [captured.get(plan.id) ?? [], seen.get(plan.id) ?? []]
      const what = `exchange ${plan.id} of seed ${SEED} (${plan.method}, ${plan.abort})`
      if (rows.length !== requests.length) {
        // Cut before the app had read its head.
        const isEarly = plan.abort === 'visitor-asking' && rows.length - requests.length === 1
        if (!isEarly) throw new Error(`${what}: ${rows.length} rows for ${requests.length} requests`)
      }
      if (plan.abort === 'none' && requests.length === 0) throw new Error(`${what}: the app never saw it`)
      for (const [index, row] of rows.entries()) {
        const problem = await problemOf(plan, row, requests[index], answers.get(plan.id)!, api)
        if (problem !== undefined) throw new Error(`${what}: ${problem}`)
      }
    }
  },
  15_000 + 500 * FUZZ,
)

/** The oldest first. */
async function allOf(api: InspectorApi): Promise<ExchangeDetail[]> {
  const details: ExchangeDetail[] = []
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const rows = await api.rows(`?limit=1000&before=${before > 1e15 ? '999999999999999' : before}`)
    const [last] = rows.slice(-1)
    if (last === undefined) return details.reverse()
    before = Number(last.id)
    for (let at = 0; at < rows.length; at += 50)
      details.push(
        ...(await Promise.all(rows.slice(at, at + 50).map(({ id }) => api.detail(id, '?reveal=1')))),
      )
  }
}

/** What of a row is not as both sides saw it. */
async function problemOf(
  plan: Plan,
  row: ExchangeDetail,
  request: Saw | undefined,
  answer: Saw,
  api: InspectorApi,
): Promise<string | undefined> {
  const isWhole = plan.abort === 'none'
  const bytesOf = (side: string) => api.bytes(`exchanges/${row.id}/${side}.body`)
  if (row.isIncomplete) return 'incomplete'
  if (request !== undefined && row.request?.head !== request.head)
    return `request head ${JSON.stringify(row.request?.head)}`
  const asked = plan.body
  const gotBody = await bytesOf('request')
  const total = row.request?.body.totalBytes ?? 0
  if (!asked.subarray(0, gotBody.length).equals(gotBody)) return 'request body'
  if (gotBody.length !== Math.min(total, MAX_BODY)) return `request body: ${gotBody.length} kept of ${total}`
  if (request?.isComplete === true) {
    if (!request.body.equals(asked) || total !== asked.length || row.request?.body.isComplete !== true)
      return 'request length'
    if (trailersOf(row.request?.trailers) !== trailersOf(fields(plan.trailers))) return 'request trailers'
    if (
      request.trailers.toLowerCase().replace(/[ \t]/g, '') !==
      plan.trailers.toLowerCase().replace(/[ \t]/g, '')
    )
      return 'trailers of the app'
  } else if (request !== undefined && total < request.body.length) return 'less than the app got'
  const answered = await bytesOf('response')
  const answerTotal = row.response?.body.totalBytes ?? 0
  if (!plan.responseBody.subarray(0, answered.length).equals(answered)) return 'answer body'
  if (answered.length !== Math.min(answerTotal, MAX_BODY))
    return `answer body: ${answered.length} kept of ${answerTotal}`
  if (row.response !== undefined && row.response.head !== plan.responseHead)
    return `answer head ${row.response.head}`
  if (row.response !== undefined && row.interim.join('') !== plan.interim.join(''))
    return `interim ${row.interim.join('')}`
  if (!isWhole) return row.state === 'failed' || row.state === 'done' ? undefined : `state ${row.state}`
  // The visitor's side.
  if (!answer.isComplete) return 'the visitor got no whole answer'
  if (plan.isWebSocket) return messagesOf(plan, row, request, answer, api)
  if (row.state !== 'done') return `state ${row.state} ${row.code ?? ''}`
  if (!answer.body.equals(plan.responseBody) || answerTotal !== plan.responseBody.length)
    return 'answer length'
  if (row.response?.body.isComplete !== true) return 'answer not complete'
  if (trailersOf(row.response.trailers) !== trailersOf(fields(plan.responseTrailers)))
    return 'answer trailers'
  if (trailersOf(fields(answer.trailers)) !== trailersOf(fields(plan.responseTrailers)))
    return "the visitor's trailers"
  return undefined
}

async function messagesOf(
  plan: Plan,
  row: ExchangeDetail,
  request: Saw | undefined,
  answer: Saw,
  api: InspectorApi,
): Promise<string | undefined> {
  const { json } = await api.ask(`exchanges/${row.id}/frames?limit=1000`)
  const said = (from: Frame['from']) =>
    json.frames
      .filter((frame: Frame) => frame.from === from && frame.type === 'text')
      .map(({ text }: Frame) => text)
      .join()
  if (row.kind !== 'websocket') return `kind ${row.kind}`
  if (said('visitor') !== plan.messages.join() || request?.messages.join() !== plan.messages.join())
    return 'messages'
  if (said('app') !== answer.messages.join()) return 'messages of the app'
  return answer.messages.length === plan.messages.length ? undefined : 'lost messages'
}

type Line = { readonly name: string; readonly value: string }
const fields = (text: string): Line[] =>
  text.split('\r\n').flatMap(line => {
    const at = line.indexOf(':')
    return at < 0 ? [] : [{ name: line.slice(0, at), value: line.slice(at + 1).trim() }]
  })
const trailersOf = (lines: readonly Line[] = []) =>
  lines.map(({ name, value }) => `${name}: ${value}`).join('\n')
