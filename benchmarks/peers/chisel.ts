// chisel: TCP over SSH over WebSocket; the encryption cannot be turned off. Go module `github.com/jpillora/chisel`.

import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { command, detectBinary } from './binary.ts'
import { endpoint, type Origins, type Peer, type Tunnel } from './peer.ts'

export const chisel: Peer = {
  name: 'chisel',
  kind: 'tcp',
  how: 'reverse remotes; encrypts always',
  detect: () => detectBinary('chisel', '--version'),
  start,
}

function start(origins: Origins): Promise<Tunnel> {
  const control = freePort()
  const remotes = Object.entries(origins).map(([name, port]) => ({ name, port, open: freePort() }))
  return assemble({
    async server() {
      const child = await launch(command('chisel', `server --host 127.0.0.1 --port ${control} --reverse`))
      await listening(control)
      return [child]
    },
    client: async () => [
      await launch(
        command(
          'chisel',
          `client http://127.0.0.1:${control}`,
          ...remotes.map(({ port, open }) => `R:127.0.0.1:${open}:127.0.0.1:${port}`),
        ),
      ),
    ],
    endpoints: () => Object.fromEntries(remotes.map(({ name, open }) => [name, endpoint(open)])),
  })
}
