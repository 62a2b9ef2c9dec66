// The public side, asked again and again through a proxy in front of the server that goes and comes back.

import { expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { codeOf, eventually } from '../support/events.ts'

class ComingAndGoing implements AsyncDisposable {
  isOpen = true
  visits = 0
  readonly #sockets = new Set<Socket>()
  readonly #proxy = createServer(visitor => this.#visited(visitor)).listen(0, '127.0.0.1')
  readonly server: TunnelServer

  constructor() {
    const { port } = this.#proxy.address() as AddressInfo
    this.server = new TunnelServer({ port: 0, host: '127.0.0.1', publicUrl: `http://localhost:${port}` })
  }

  /** A client of the server itself. */
  async client(): Promise<TunnelClient> {
    await this.server.start()
    const server = `http://127.0.0.1:${this.server.port}`
    return new TunnelClient({ server, subdomain: 'shop', fetch: () => new Response(), probeIntervalMs: 10 })
  }

  #visited(visitor: Socket): void {
    this.visits++
    if (!this.isOpen) return void visitor.destroy()
    const inner = connect(this.server.port, '127.0.0.1')
    const both = [visitor, inner]
    for (const one of both) {
      this.#sockets.add(one)
      one.on('error', () => {})
      // A visitor that leaves is gone for the server, too: it would be waited for when the server stops.
      one.on('close', () => {
        for (const other of both) other.destroy()
      })
    }
    visitor.pipe(inner).pipe(visitor)
  }

  /** As many probes as nothing else but time would tell of. */
  more(count: number): Promise<void> {
    const from = this.visits
    return eventually(() => this.visits > from + count, 'more probes')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop()
    for (const socket of this.#sockets) socket.destroy()
    this.#proxy.close()
  }
}

test('when visitors do not get through any more there is one event, and one when they do again', async () => {
  await using side = new ComingAndGoing()
  await using client = await side.client()
  await client.connect()
  const told: object[] = []
  client.on('reach', said => told.push(said))
  await side.more(3)
  expect(told).toEqual([])
  side.isOpen = false
  await eventually(() => told.length === 1, 'the news')
  await side.more(3)
  side.isOpen = true
  await eventually(() => told.length === 2, 'better news')
  const url = client.getTunnelUrl()
  expect(told).toEqual([
    { url, isReachable: false },
    { url, isReachable: true },
  ])
})

test('it asks while the event has a listener and the client is connected, and at no other time', async () => {
  await using side = new ComingAndGoing()
  await using client = await side.client()
  const asks = async (isExpected: boolean) => {
    const from = side.visits
    // Ten times the interval, in which one probe would be enough.
    if (isExpected) await side.more(1)
    else await Bun.sleep(100)
    expect(side.visits > from).toBe(isExpected)
  }
  const stop = client.on('reach', () => {})
  await asks(false)
  await client.connect()
  await asks(true)
  stop()
  // One may be under way.
  expect(await client.probe()).toBe(true)
  await asks(false)
  client.on('reach', () => {})
  await asks(true)
  await client.disconnect()
  await asks(false)
})

test('an interval that is none is refused', async () => {
  for (const probeIntervalMs of [0, -1, Number.NaN, 2_147_483_648])
    expect(await codeOf(Promise.try(() => new TunnelClient({ port: 1, probeIntervalMs })))).toBe(
      'OPTION_INVALID',
    )
})
