// Raw tunnels of `localtunnels server --workers`: TCP at the worker that has the client, TLS at all of them.

import { afterEach, describe, expect, test } from 'bun:test'
import { createServer as createTlsServer, connect as secure } from 'node:tls'
import { makeCertificate } from '../support/certificates.ts'
import { freePort } from '../support/ports.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { within } from '../support/within.ts'
import { closeAll, closing, freeze, signal, Team } from './team.ts'

afterEach(closeAll)

const hello = () => new Response('hello')

describe.if(process.platform === 'linux')('raw tunnels of workers', () => {
  test('TLS that another worker accepts reaches the client unread, and its reset is one', async () => {
    const own = await makeCertificate(['shop.localhost'])
    const app = createTlsServer(own, socket => socket.on('error', () => {}).end(`for ${socket.servername}`))
    closing.push(() => app.close())
    await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
    const { port } = app.address() as { port: number }
    const tlsPort = freePort()
    const team = await Team.start(2, '--tls-port', String(tlsPort))
    const client = await team.client(1, 'web', hello)
    await client.tls({ port, host: '127.0.0.1', subdomain: 'shop' })
    // The worker of the tunnel stands still while the connection is accepted, so the other one has it.
    const first = team.pid(1)
    await freeze(first)
    const said = Promise.withResolvers<string>()
    const visitor = secure({ host: '127.0.0.1', port: tlsPort, servername: 'shop.localhost', ca: own.cert })
    closing.push(() => visitor.destroy())
    let text = ''
    visitor.on('data', piece => (text += piece))
    visitor.on('end', () => said.resolve(text))
    visitor.on('error', said.reject)
    await new Promise<void>(resolve => visitor.once('connect', resolve))
    await Bun.sleep(200)
    signal(first, 'SIGCONT')
    expect(await within(said.promise, 'the answer')).toBe('for shop.localhost')
  })

  test('the port of a client whose worker is killed is open again at the one that it comes to', async () => {
    using origin = new RawOrigin()
    const port = freePort()
    const team = await Team.start(2, '--tcp-ports', String(port))
    const client = await team.client(2, 'web', hello)
    await client.tcp({ port: origin.port, host: '127.0.0.1', remotePort: port })
    ;(await rawDial(port)).socket.terminate()
    await origin.accept()
    const back = Promise.withResolvers<void>()
    client.on('connected', () => back.resolve())
    signal(team.pid(2), 'SIGKILL')
    await within(back.promise, 'the client to be back')
    const visitor = await rawDial(port)
    const app = await origin.accept()
    await app.send('hello')
    await visitor.until('hello')
    visitor.socket.terminate()
  })

  test('clients of a pool at several workers all get connections', async () => {
    using one = new RawOrigin()
    using two = new RawOrigin()
    const port = freePort()
    const team = await Team.start(2, '--tcp-ports', String(port))
    for (const [worker, origin] of [one, two].entries()) {
      const client = await team.client(worker + 1, `web${worker}`, hello)
      await client.tcp({ port: origin.port, host: '127.0.0.1', remotePort: port, pool: true })
    }
    for (let count = 0; one.connections.length === 0 || two.connections.length === 0; count++) {
      expect(count).toBeLessThan(200)
      const visitor = await rawDial(port)
      await visitor.send('x')
      await Bun.sleep(5)
      visitor.socket.terminate()
    }
  })
})
