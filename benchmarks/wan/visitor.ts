// One visitor, beside the server: `visitor.ts KIND URL HOST MS`, prints one JSON result.
// KIND: `down` and `up` move bytes for MS and print bytes per second; `small` prints the times of small requests, made
// one after the other for MS on a connection that is open; `beside` the same while a download goes on.

import { once } from 'node:events'
import { Agent, get, request } from 'node:http'

const [kind, url = '', host = '', ms = '0'] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true })
const headers = { host }
const durationMs = Number(ms)

async function download(forMs: number): Promise<number> {
  const startedAt = performance.now()
  let received = 0
  const [answer] = await once(get(`${url}/down/${forMs}`, { headers }), 'response')
  for await (const piece of answer) received += piece.length
  return (received / (performance.now() - startedAt)) * 1000
}

async function upload(forMs: number): Promise<number> {
  const startedAt = performance.now()
  const piece = Buffer.alloc(65_536, 'y')
  const sending = request(`${url}/up`, { method: 'POST', headers })
  const answered = once(sending, 'response')
  while (performance.now() - startedAt < forMs) if (!sending.write(piece)) await once(sending, 'drain')
  sending.end()
  const [answer] = await answered
  let text = ''
  for await (const part of answer) text += part
  return (Number(text) / (performance.now() - startedAt)) * 1000
}

async function small(): Promise<number> {
  const startedAt = performance.now()
  const [answer] = await once(get(`${url}/`, { headers, agent }), 'response')
  answer.resume()
  await once(answer, 'end')
  return performance.now() - startedAt
}

async function smallFor(forMs: number): Promise<number[]> {
  const times: number[] = []
  const until = performance.now() + forMs
  while (performance.now() < until) times.push(await small())
  return times
}

async function beside(): Promise<number[]> {
  await small()
  const bulk = download(durationMs + 2000)
  // The download is under way, and has found its pace.
  await smallFor(1500)
  const times = await smallFor(durationMs)
  await bulk
  return times
}

async function measure(): Promise<number | number[]> {
  switch (kind) {
    case 'down':
      return download(durationMs)
    case 'up':
      return upload(durationMs)
    case 'beside':
      return beside()
    default:
      await small()
      return smallFor(durationMs)
  }
}

console.log(JSON.stringify(await measure()))
process.exit(0)
