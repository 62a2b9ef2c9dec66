// A hostile or confused origin that switches protocols where nobody asked it to.

import { expect, test } from 'bun:test'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

for (const [asked, answered] of [
  ['h2c', 'h2c'],
  ['h2c', 'websocket'],
  ['websocket', 'h2c'],
] as const) {
  test(`asked for ${asked}, a 101 to ${answered} is a 502 and no pipe`, async () => {
    using origin = new RawOrigin()
    await using tunnel = await startTunnel({ port: origin.port })
    const visitor = await rawDial(tunnel.port)
    await visitor.send(
      `GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: Upgrade\r\nUpgrade: ${asked}\r\n\r\n`,
    )
    const connection = await origin.accept()
    await connection.until('\r\n\r\n')
    await connection.send(`HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: ${answered}\r\n\r\n`)
    expect(await visitor.until('\r\n')).toStartWith('HTTP/1.1 502')
    visitor.socket.end()
  })
}
