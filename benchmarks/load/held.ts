// Connections held open, and a download that never ends: for what others measure meanwhile. Both run until killed.

import type { Endpoint } from '../peers/peer.ts'
import { type Answer, requestBytes, Visitor } from './visitor.ts'

/** How many connections are opened at the same time: fewer than any listen backlog. */
const OPENING = 50

export async function held(endpoint: Endpoint, path: string, connections: number): Promise<void> {
  const request = requestBytes(endpoint, 'GET', path)
  const visitors: Visitor[] = []
  let good = 0
  for (let at = 0; at < connections; at += OPENING) {
    const group = Array.from({ length: Math.min(OPENING, connections - at) }, () => new Visitor(endpoint))
    visitors.push(...group)
    const answers = await Promise.all(group.map(visitor => ask(visitor, request)))
    good += answers.filter(answer => answer?.status === 200 && !answer.closes).length
  }
  console.log(`held ${good}`)
  await new Promise(() => setInterval(() => visitors.length, 60_000))
}

export async function busy(endpoint: Endpoint, path: string): Promise<void> {
  const request = requestBytes(endpoint, 'GET', path)
  for (let first = true; ; first = false) {
    const visitor = new Visitor(endpoint)
    const answer = await ask(visitor, request)
    visitor.close()
    if (answer?.status !== 200)
      throw new Error(`the download failed: ${answer?.status ?? 'connection ended'}`)
    if (first) console.log('busy')
  }
}

async function ask(visitor: Visitor, request: Uint8Array): Promise<Answer | null> {
  await visitor.connect()
  return new Promise(resolve => {
    visitor.onAnswer = resolve
    visitor.send(request)
  })
}
