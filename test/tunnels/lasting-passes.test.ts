// `whileOpen` of guards on real servers: what throws there, or cuts at once, leaves nothing behind and ends no other visit.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, createServer, type Server } from 'node:net'
import { type Guard, TunnelClient } from '../../src/index.ts'
import type { Verdict } from '../../src/plugin.ts'
import { ask } from '../support/ask.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { codeOf, eventually } from '../support/events.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

let app: Bun.Server<undefined>
let service: Server
beforeAll(async () => {
  app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  service = createServer(socket => void socket.on('error', () => {}).end('hello'))
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
})
afterAll(() => {
  service.close()
  return app.stop(true)
})

type WhileOpen = (cut: () => void) => () => void

let thrown = 0
const fail = (): never => {
  thrown++
  throw new Error('secret words')
}
const throwsAtOnce: WhileOpen = fail
const throwsAtEnd: WhileOpen = () => fail
const cutsAtOnce: WhileOpen = cut => {
  cut()
  return () => {}
}

const FAULT = 'What a guard decided has failed: Error: secret words.'

const ACTION = 'Correct the plugin, or what it waits for.'

const WAYS = ['at once', 'by a promise'] as const

/** Two guards: one counts what it let in, and what of it is over; the other one does this. */
function guardsWith(whileOpen: WhileOpen, way: (typeof WAYS)[number], isFirst: boolean) {
  const count = { open: 0 }
  const counting: WhileOpen = () => {
    count.open++
    return () => {
      count.open--
    }
  }
  const guard = (name: string, pass: Verdict): Guard => ({
    name,
    admit: () => (way === 'at once' ? pass : Promise.resolve(pass)),
  })
  const both = [guard('odd', { whileOpen }), guard('counting', { whileOpen: counting })]
  return { count, guards: isFirst ? both : both.reverse() }
}

for (const way of WAYS)
  for (const isFirst of [true, false]) {
    const order = `${way}, ${isFirst ? 'first' : 'last'}`

    test(`a guard that throws when it lets in, or when that is over, costs its visitor at most (${order})`, async () => {
      for (const [whileOpen, status] of [
        [throwsAtOnce, 500],
        [throwsAtEnd, 200],
      ] as const) {
        const { guards, count } = guardsWith(whileOpen, way, isFirst)
        await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { guards } })
        const errors: string[] = []
        tunnel.server.on('error', error => errors.push(error.message))
        for (let visits = 0; visits < 3; visits++) {
          const answer = await ask(tunnel.port, tunnel.host)
          expect(answer.status).toBe(status)
          expect(answer.code).toBe(status === 500 ? 'PLUGIN_FAILED' : undefined)
          expect(answer.body).not.toContain('secret words')
        }
        await eventually(() => count.open === 0, 'the end of each')
        expect(tunnel.server.getStats().pendingResponses).toBe(0)
        await tunnel.server.stop()
        expect(errors).toEqual([
          `${FAULT} ${ACTION}`,
          `${FAULT} Failures since the last report: 2. ${ACTION}`,
        ])
      }
    })

    test(`the same for raw connections and datagrams (${order})`, async () => {
      for (const whileOpen of [throwsAtOnce, throwsAtEnd]) {
        const { guards, count } = guardsWith(whileOpen, way, isFirst)
        await using echo = await datagramApp()
        await using server = await startServer({ guards, limits: { flowIdleMs: 250 } })
        const errors: string[] = []
        server.on('error', error => errors.push(error.message))
        const before = thrown
        const ends: unknown[] = []
        server.on('visitorDisconnected', ({ error }) => ends.push(error))
        const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
        const address = service.address() as { port: number }
        const tcp = await client.tcp({ port: address.port })
        const udp = await client.udp({ port: echo.port })
        const visit = new Promise<string>((resolve, reject) => {
          let text = ''
          connect(tcp.port ?? 0, '127.0.0.1')
            .on('data', piece => (text += piece.toString()))
            .on('end', () => resolve(text))
            .on('error', reject)
        })
        if (whileOpen === throwsAtOnce) expect(await codeOf(visit)).toBe('ECONNRESET')
        else expect(await visit).toBe('hello')
        await eventually(() => ends.length === 1, 'the end of the connection')
        expect(ends).toEqual([whileOpen === throwsAtOnce ? 'PLUGIN_FAILED' : undefined])
        expect(errors).toEqual([`${FAULT} ${ACTION}`])
        await using visitor = await DatagramVisitor.to(udp.port ?? 0)
        await visitor.send(new TextEncoder().encode('hello'))
        await eventually(() => thrown === before + 2, 'the fault of the flow')
        await eventually(() => server.getStats().flows === 0, 'no flow to be left')
        expect(server.getStats().rawVisitors).toBe(0)
        expect(count.open).toBe(0)
        await client.disconnect()
        await server.stop()
        expect(errors).toEqual([
          `${FAULT} ${ACTION}`,
          `${FAULT} Failures since the last report: 1. ${ACTION}`,
        ])
      }
    })

    test(`a guard that cuts at once what it lets in leaves nothing behind (${order})`, async () => {
      const { guards, count } = guardsWith(cutsAtOnce, way, isFirst)
      await using echo = await datagramApp()
      await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { guards } })
      const errors: unknown[] = []
      tunnel.server.on('error', error => errors.push(error))
      const ends: unknown[] = []
      tunnel.server.on('request', ({ error }) => ends.push(error))
      tunnel.server.on('visitorDisconnected', ({ error }) => ends.push(error))
      expect(await codeOf(ask(tunnel.port, tunnel.host))).toBe('ECONNRESET')
      const address = service.address() as { port: number }
      const tcp = await tunnel.client.tcp({ port: address.port })
      const closed = new Promise<void>(resolve => {
        connect(tcp.port ?? 0, '127.0.0.1')
          .on('error', () => {})
          .on('close', () => resolve())
          .resume()
      })
      await closed
      await eventually(() => ends.length === 2, 'both ends')
      const udp = await tunnel.client.udp({ port: echo.port })
      await using visitor = await DatagramVisitor.to(udp.port ?? 0)
      await visitor.send(new TextEncoder().encode('hello'))
      await eventually(() => echo.seen.length > 0 || tunnel.server.getStats().flows === 0, 'the flow')
      await eventually(() => tunnel.server.getStats().flows === 0 && count.open === 0, 'no flow to be left')
      const { pendingResponses, rawVisitors } = tunnel.server.getStats()
      expect({ pendingResponses, rawVisitors, errors }).toEqual({
        pendingResponses: 0,
        rawVisitors: 0,
        errors: [],
      })
    })
  }

test('what a guard cuts after it is over is not the next request of the connection', async () => {
  const cuts: (() => void)[] = []
  const guard: Guard = {
    name: 'late',
    admit: () => ({
      whileOpen(cut) {
        cuts.push(cut)
        return () => {}
      },
    }),
  }
  await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { guards: [guard] } })
  const socket = connect(tunnel.port, '127.0.0.1')
  let text = ''
  socket.on('data', piece => (text += piece.toString()))
  const send = () => socket.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
  const answers = () => text.split('hello').length - 1
  send()
  await eventually(() => answers() === 1, 'the first answer')
  cuts[0]?.()
  send()
  await eventually(() => answers() === 2, 'the second answer')
  socket.destroy()
})
