// How servers of a cluster know each other: what was read on the way between two of them opens nothing again.

import { expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer } from 'node:net'
import { deferred } from '../../src/deferred.ts'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import { PEER_PROTOCOL, peerProof, RAW_PROTOCOL } from '../../src/parts/cluster/peer-wire.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { greet } from '../support/greeting.ts'
import { freePort } from '../support/ports.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'

const SECRET = 'a-secret-of-32-characters-at-least'

/** The network between two servers, where someone reads along. */
class ReadWay implements Disposable {
  port = 0
  target = 0
  /** What each connection brought to the server that was called, in the pieces that its answers part. */
  readonly brought: string[][] = []
  readonly #server = createServer(near => {
    const pieces: string[] = []
    this.brought.push(pieces)
    let isAnswered = true
    const far = connect(this.target, '127.0.0.1')
    near.on('data', bytes => {
      if (isAnswered) pieces.push('')
      isAnswered = false
      pieces[pieces.length - 1] += bytes.toString('latin1')
    })
    far.on('data', () => (isAnswered = true))
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) socket.on('error', () => {})
  })

  async listen(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    this.port = (this.#server.address() as AddressInfo).port
    return `http://127.0.0.1:${this.port}`
  }

  [Symbol.dispose](): void {
    this.#server.close()
  }
}

test.each(['requests', 'raw visitors'])(
  'what a server sent to another one opens nothing when someone else sends it again: %s',
  async kind => {
    using way = new ReadWay()
    using origin = new RawOrigin()
    await using cluster = new TestCluster()
    const port = freePort()
    const peerUrl = await way.listen()
    const isRaw = kind !== 'requests'
    const a = await cluster.server({ cluster: { peerUrl }, ...(isRaw && { tcpPorts: `${port}` }) })
    const b = await cluster.server(isRaw ? { host: '127.0.0.2', tcpPorts: `${port}` } : {})
    way.target = a.port
    const client = await cluster.client({
      server: a.url,
      subdomain: 'shop',
      fetch: () => new Response('hello'),
    })
    if (!isRaw) expect((await ask(b.port, 'shop.localhost')).body).toBe('hello')
    else {
      await client.tcp({ port: origin.port, host: '127.0.0.1', remotePort: port })
      let visitor = await rawDial(port, '127.0.0.2').catch(() => undefined)
      while (visitor === undefined) visitor = await rawDial(port, '127.0.0.2').catch(() => undefined)
      await visitor.send('hello')
      await (await origin.accept()).until('hello')
      visitor.socket.terminate()
    }
    const [pieces = []] = way.brought
    expect(pieces.length).toBeGreaterThan(1)
    // In the same pace, and at once.
    for (const parts of [pieces, [pieces.join('')]]) {
      const stranger = await rawDial(a.port)
      let answers = ''
      for (const piece of parts) {
        await stranger.send(piece)
        await stranger.when(() => stranger.text !== '' || stranger.hasEnded, 'an answer')
        answers += stranger.take(stranger.bytes.length)
      }
      answers += await stranger.end()
      expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 401'])
    }
    expect(origin.connections).toHaveLength(kind === 'requests' ? 0 : 1)
  },
  60_000,
)

test.each([PEER_PROTOCOL, RAW_PROTOCOL])('each connection gets a number of its own: %s', async protocol => {
  const directory = new MemoryDirectory()
  await using cluster = new TestCluster({}, () => Promise.resolve(directory))
  const { port } = await cluster.server({ cluster: { secret: SECRET } })
  const [{ id } = { id: '' }] = await directory.nodes()
  const by = (number: string): string => peerProof(SECRET, id, number)
  const good = protocol === PEER_PROTOCOL ? 101 : 102
  const first = await greet(port, protocol, '', by)
  const second = await greet(port, protocol, '', by)
  expect([first.status, second.status]).toEqual([good, good])
  expect(second.number).not.toBe(first.number)
  for (const answer of [
    () => by(first.number ?? ''),
    () => by(''),
    (number: string) => peerProof(SECRET, 'another server', number),
    (number: string) => peerProof('another secret', id, number),
    () => 'x'.repeat(5_000),
  ])
    expect((await greet(port, protocol, '', answer)).status).toBe(401)
  // A proof before the number.
  expect((await greet(port, protocol, by(''))).status).toBe(401)
})

test('a stranger that gets a number and says nothing is cut', async () => {
  await using cluster = new TestCluster()
  const { port } = await cluster.server()
  const stranger = await rawDial(port)
  await stranger.send(
    `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${PEER_PROTOCOL}\r\n\r\n`,
  )
  await stranger.until('\r\n\r\n')
  await stranger.closed()
})

test('a server that has begun to stop takes no other server in: what that one would send there could be lost', async () => {
  const left = deferred()
  class Leaving extends MemoryDirectory {
    override leave(node: string) {
      left.resolve()
      return super.leave(node)
    }
  }
  const directory = new Leaving()
  await using cluster = new TestCluster({}, () => Promise.resolve(directory))
  const a = await cluster.server({ cluster: { secret: SECRET } })
  const [node] = await directory.nodes()
  let stopped: Promise<void> | undefined
  const greeted = greet(a.port, PEER_PROTOCOL, '', async number => {
    stopped = a.stop()
    await left.promise
    return peerProof(SECRET, node?.id ?? '', number)
  })
  expect((await greeted).status).toBe(0)
  await stopped
})
