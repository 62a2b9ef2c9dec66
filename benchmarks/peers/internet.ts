// Tunnels whose server is somebody else's, on the internet. They are looked for and started, to say how long they take;
// their requests are not measured beside loopback, which would compare networks and not tunnels.

import { launch } from '../measure/children.ts'
import { command, detectBinary } from './binary.ts'
import type { Origins, Peer, Tunnel } from './peer.ts'

export const cloudflared: Peer = internet(
  'cloudflared',
  '--version',
  port => `tunnel --no-autoupdate --url http://127.0.0.1:${port}`,
  /https:\/\/\S+\.trycloudflare\.com/,
)
export const ngrok: Peer = internet(
  'ngrok',
  'version',
  port => `http ${port} --log stdout`,
  /url=(https:\S+)/,
)
export const expose: Peer = internet(
  'expose',
  '--version',
  port => `share http://127.0.0.1:${port} --no-interaction`,
  /https:\/\/\S+/,
)

function internet(name: string, versionFlag: string, flags: (port: number) => string, url: RegExp): Peer {
  return {
    name,
    kind: 'http',
    how: 'through its own service on the internet',
    detect: () => detectBinary(name, versionFlag, 'its maker offers downloads'),
    async start(origins: Origins): Promise<Tunnel> {
      const began = performance.now()
      const [port] = Object.values(origins)
      const child = await launch(command(name, flags(port!)), { ready: url, deadlineMs: 20_000 })
      const ms = Math.round(performance.now() - began)
      await child.stop()
      throw new Error(`ready after ${ms} ms at ${child.match?.[0]}; not measured beside loopback`)
    },
  }
}
