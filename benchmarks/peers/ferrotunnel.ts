// ferrotunnel: HTTP by Host over one multiplexed connection. Crate `ferrotunnel-cli`, whose stock build stops at
// 100 streams and 10 MB a second; `install.ts` builds a second binary with those two caps raised, and that one runs.

import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { binary, command, detectBinary, scratch } from './binary.ts'
import { endpoint, type Origins, type Peer, type Tunnel } from './peer.ts'

const TOKEN = 'bench'.padEnd(32, '0')
const UNCAPPED = 'ferrotunnel-uncapped'

export const ferrotunnel: Peer = {
  name: 'ferrotunnel',
  kind: 'http',
  how: 'its stream and byte caps raised (a stock one gives 100 requests/s), no dashboard; one client per origin',
  detect: () => detectBinary(program(), '--version'),
  start,
}

function program(): string {
  return binary(UNCAPPED) ? UNCAPPED : 'ferrotunnel'
}

async function start(origins: Origins): Promise<Tunnel> {
  const [control, open, raw] = [freePort(), freePort(), freePort()]
  const files = scratch('ferrotunnel')
  await Bun.write(files.path('token'), TOKEN)
  const host = (name: string): string => `${name}.test`
  return assemble({
    async server() {
      const binds = `--bind 127.0.0.1:${control} --http-bind 127.0.0.1:${open} --tcp-bind 127.0.0.1:${raw}`
      const child = await launch(command(program(), `server ${binds} --token-file`, files.path('token')))
      await Promise.all([listening(control), listening(open)])
      return [child]
    },
    client: () =>
      Promise.all(
        Object.entries(origins).map(([name, port]) =>
          launch(
            command(
              program(),
              `client --server 127.0.0.1:${control} --token ${TOKEN} --no-dashboard ` +
                `--local-addr 127.0.0.1:${port} --tunnel-id ${host(name)}`,
            ),
          ),
        ),
      ),
    endpoints: () =>
      Object.fromEntries(
        Object.keys(origins).map(name => [name, endpoint(open, host(name), { 'x-tunnel-token': TOKEN })]),
      ),
    cleanup: files.remove,
  })
}
