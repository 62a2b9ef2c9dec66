// `localtunnels/vite`: a dev server of Vite with a public URL, which it knows before it starts.
//
//   // vite.config.js
//   import { localtunnels } from 'localtunnels/vite'
//   export default { plugins: [localtunnels({ server: 'https://tunnel.example', subdomain: 'shop' })] }

import type { Plugin, ViteDevServer } from 'vite'
import { type DevTunnelOptions, failureLine, hasServer, leadTo, NO_SERVER, urlLine } from './dev-tunnel.ts'
import { HeldTunnel } from './held-tunnel.ts'

export type ViteTunnelOptions = DevTunnelOptions

/**
 * Reserves a name when the dev server starts, lets it accept that host, and shows the URL with Vite's own. `t` and enter
 * pause the tunnel and open it again. A tunnel that cannot be made is one line, and the dev server starts without. Needs
 * `server`, or `TUNNEL_SERVER`.
 */
export function localtunnels({ enabled = true, ...options }: ViteTunnelOptions = {}): Plugin {
  const tunnel = HeldTunnel.of('vite', options)
  let hold: ReturnType<HeldTunnel['hold']> | undefined
  return {
    name: 'localtunnels',
    apply: (_, { command, isPreview }) =>
      enabled && command === 'serve' && isPreview !== true && process.env.VITEST === undefined,
    async config() {
      if (!hasServer(options)) return undefined
      await tunnel.open()
      return tunnel.host === undefined ? undefined : { server: { allowedHosts: [tunnel.host] } }
    },
    configureServer(server) {
      const { logger } = server.config
      if (!hasServer(options)) {
        logger.warn(NO_SERVER)
        return
      }
      if (tunnel.failure !== undefined) logger.warn(failureLine(tunnel.failure))
      hold = tunnel.hold()
      follow(server, tunnel)
      showUrl(server, tunnel)
      addShortcut(server, tunnel)
    },
    // Called when the dev server closes, which waits for this. The name is free at once.
    closeBundle: () => hold?.release(),
  }
}

/** Sends visitors to the dev server while it listens. A restart makes a new one within the same process. */
function follow({ httpServer, config }: ViteDevServer, tunnel: HeldTunnel): void {
  httpServer?.once('listening', () => leadTo(tunnel, httpServer.address(), Boolean(config.server.https)))
}

function showUrl(server: ViteDevServer, tunnel: HeldTunnel): void {
  const print = server.printUrls.bind(server)
  server.printUrls = () => {
    print()
    server.config.logger.info(urlLine(tunnel))
  }
}

function addShortcut(server: ViteDevServer, tunnel: HeldTunnel): void {
  const bind = server.bindCLIShortcuts.bind(server)
  const shortcut = {
    key: 't',
    description: 'pause the tunnel, or open it again',
    async action({ config }: ViteDevServer) {
      if (tunnel.url === undefined) await tunnel.open()
      else await tunnel.close()
      config.logger.info(tunnel.failure === undefined ? urlLine(tunnel) : tunnel.failure.message)
    },
  }
  server.bindCLIShortcuts = options =>
    bind({ ...options, customShortcuts: [shortcut, ...(options?.customShortcuts ?? [])] } as typeof options)
}
