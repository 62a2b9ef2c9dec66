// What every Socket must do when its connection goes through a proxy: the same. Runner-free, as suites/socket.ts.

import assert from 'node:assert/strict'
import { parseProxy } from '../../src/client/carriers/proxy.ts'
import { ConnectOpening } from '../../src/client/proxies/dial.ts'
import type { Address, Dial, Socket, SocketHandler } from '../../src/socket.ts'
import { OutboundProxy } from '../support/outbound-proxy.ts'
import { peerServer } from '../support/peer.ts'
import { Recorder } from '../support/recorder.ts'
import { TEST_CERT } from '../support/tls.ts'
import { within } from '../support/within.ts'
import { connectionCases, type SocketCase, TRUSTING } from './socket.ts'

export function viaCases(dial: Dial): SocketCase[] {
  return [false, true].flatMap(isSecureProxy => {
    const kind = `through ${isSecureProxy ? 'TLS' : 'a proxy'}`
    const through = (proxy: OutboundProxy, address: Address, handler: SocketHandler): Promise<Socket> => {
      const settings = parseProxy(proxy.url(), 'proxy', TEST_CERT)
      const { host = '', port = 0 } = address
      const opening = new ConnectOpening(settings, host, port)
      return within(dial({ ...address, via: { address: settings.address, opening } }, handler), 'the dial')
    }
    const connection = connectionCases(async (tls, handler) => {
      const server = await peerServer({ tls })
      const proxy = await OutboundProxy.start({ kind: 'http', tls: isSecureProxy })
      const address = { host: '127.0.0.1', port: server.port, ...(tls && { tls: TRUSTING }) }
      const near = await through(proxy, address, handler)
      const close = () => {
        near.terminate()
        proxy.close()
        server.close()
      }
      return { near, far: await server.accepted(), close }
    })
    return [
      ...connection.map(({ name, run }) => ({ name: `${kind}, ${name}`, run })),
      {
        name: `${kind}, a certificate is verified against the host behind it`,
        async run() {
          const server = await peerServer({ tls: true })
          const names = ['tunnel.test', 'other.test']
          const proxy = await OutboundProxy.start({ kind: 'http', tls: isSecureProxy, names })
          const reach = (host: string, tls: Address['tls']) =>
            through(proxy, { host, port: server.port, ...(tls && { tls }) }, new Recorder())
          const refuses = (code: string, host: string, tls: Address['tls']) =>
            assert.rejects(reach(host, tls), { code })
          await refuses('DEPTH_ZERO_SELF_SIGNED_CERT', 'tunnel.test', {})
          await refuses('ERR_TLS_CERT_ALTNAME_INVALID', 'other.test', { ca: TEST_CERT })
          const given = { ca: TEST_CERT, serverName: 'other.test' }
          await refuses('ERR_TLS_CERT_ALTNAME_INVALID', 'tunnel.test', given)
          for (const tls of [{ ca: TEST_CERT }, { verify: false }]) {
            const near = await reach('tunnel.test', tls)
            near.terminate()
          }
          proxy.close()
          server.close()
        },
      },
    ]
  })
}
