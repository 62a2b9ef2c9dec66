// TCP tunnels of a client on Node: the same bytes, each end on its own, reset told from end.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { eventually } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { ClientProcess } from '../support/processes.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'

const BULK = Buffer.alloc(
  6_000_000,
  new Uint8Array(9973).map((_, index) => index * 31),
)
const TOKEN = 'of-the-test'
const folder = mkdtempSync(join(tmpdir(), 'localtunnels-'))
const script = join(folder, 'client.mjs')

beforeAll(async () => {
  const entrypoints = [join(import.meta.dir, '../support/client-process.ts')]
  const built = await Bun.build({ entrypoints, target: 'node' })
  await Bun.write(script, built.outputs[0]!)
})
afterAll(() => rmSync(folder, { recursive: true }))

test('a client on Node carries bytes, ends and resets of TCP connections', async () => {
  using service = new RawOrigin()
  const server = await startServer()
  await using client = new ClientProcess(`127.0.0.1:${server.port}`, 'tcp', service.port, {
    program: ['node', script],
  })
  const port = Number((await client.event('connected')).split('-')[1])

  const visitor = await rawDial(port)
  const asking = visitor.send(BULK).then(() => visitor.socket.end())
  const atService = await service.accept()
  await atService.end()
  expect(atService.bytes.equals(BULK)).toBe(true)
  await asking
  await atService.send(BULK)
  atService.socket.end()
  await visitor.end()
  expect(visitor.bytes.equals(BULK)).toBe(true)
  await eventually(() => server.getStats().rawVisitors === 0, 'the first to be gone')

  const second = await rawDial(port)
  const atSecond = await service.accept()
  atSecond.socket.terminate()
  expect((await second.closed())?.message).toStartWith('ECONNRESET')
  const third = await rawDial(port)
  const atThird = await service.accept()
  third.socket.terminate()
  expect((await atThird.closed())?.message).toStartWith('ECONNRESET')
  await client[Symbol.asyncDispose]()
  await server.stop()
})

test('a private service is shared and found by clients on Node, by TCP and UDP', async () => {
  using service = new RawOrigin()
  await using echo = await datagramApp()
  await using server = await startServer({ tokens: [TOKEN] })
  const started = (name: string, port: number) =>
    new ClientProcess(`127.0.0.1:${server.port}`, name, port, {
      program: ['env', `TUNNEL_TOKEN=${TOKEN}`, 'node', script],
    })
  await using tcp = started('share:tcp:db', service.port)
  await using udp = started('share:udp:dns', echo.port)
  await Promise.all([tcp.event('connected'), udp.event('connected')])
  const [tcpPort, udpPort] = [freePort(), freePort()]
  await using tcpEnd = started('end:tcp:db', tcpPort)
  await using udpEnd = started('end:udp:dns', udpPort)
  await Promise.all([tcpEnd.event('connected'), udpEnd.event('connected')])

  for (const host of ['127.0.0.1', '::1']) {
    const visitor = await rawDial(tcpPort, host)
    void visitor.send(BULK).then(() => visitor.socket.end())
    const app = await service.accept()
    await app.end()
    expect(app.bytes.equals(BULK)).toBe(true)
    void app.send(BULK).then(() => app.socket.end())
    await visitor.end()
    expect(visitor.bytes.equals(BULK)).toBe(true)
  }
  const cut = await rawDial(tcpPort)
  const app = await service.accept()
  app.socket.terminate()
  expect((await cut.closed())?.message).toStartWith('ECONNRESET')
  await using visitor = await DatagramVisitor.to(udpPort)
  await visitor.send('question')
  expect((await visitor.received(1)).map(String)).toEqual(['question'])
})
