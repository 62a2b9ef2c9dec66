// An answer without a length that the app cuts is cut for the visitor, too, at whichever server, and however servers speak.

import { expect, test } from 'bun:test'
import { TestCluster } from '../support/clusters.ts'
import { folder } from '../support/programs.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'

for (const kind of ['unix', 'http'] as const)
  for (const version of ['1.0', '1.1'])
    test(`HTTP/${version}, servers by ${kind}`, async () => {
      await using dir = await folder('unix-peers')
      using origin = new RawOrigin()
      await using cluster = new TestCluster()
      const at = (n: number) => (kind === 'unix' ? { cluster: { peerUrl: `unix:${dir.path}/${n}` } } : {})
      const servers = [await cluster.server(at(1)), await cluster.server(at(2))]
      await cluster.client({
        server: servers[0]!.url,
        subdomain: 'shop',
        port: origin.port,
        host: '127.0.0.1',
      })
      for (const server of servers) {
        const visitor = await rawDial(server.port)
        await visitor.send(`GET / HTTP/${version}\r\nHost: shop.localhost\r\n\r\n`)
        const app = await origin.accept()
        await app.until('\r\n\r\n')
        await app.send('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf')
        await visitor.until('half')
        app.socket.terminate()
        expect(await visitor.closed()).toBeInstanceOf(Error)
        expect(visitor.hasEnded).toBeFalse()
      }
    })
