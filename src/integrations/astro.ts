// `localtunnels/astro`: the dev server of Astro with a public URL. Astro runs Vite, and only shows its own addresses.
//
//   // astro.config.mjs
//   import { localtunnels } from 'localtunnels/astro'
//   export default { integrations: [localtunnels({ server: 'https://tunnel.example', subdomain: 'shop' })] }

import type { DevTunnelOptions } from './dev-tunnel.ts'
import { HeldTunnel } from './held-tunnel.ts'
import { localtunnels as vitePlugin } from './vite.ts'

export type AstroTunnelOptions = DevTunnelOptions

/** The used part of Astro's types. */
interface Setup {
  readonly command: string
  updateConfig(
    this: void,
    config: { readonly vite: { readonly plugins: ReturnType<typeof vitePlugin>[] } },
  ): unknown
}
interface Started {
  readonly logger: { info(message: string): void }
}

export interface AstroTunnel {
  readonly name: string
  readonly hooks: {
    'astro:config:setup'(setup: Setup): void
    'astro:server:start'(started: Started): void
  }
}

/** The plugin of `localtunnels/vite` in the dev server of Astro, and a line with the URL. Builds and previews have no tunnel. */
export function localtunnels({ enabled = true, ...options }: AstroTunnelOptions = {}): AstroTunnel {
  return {
    name: 'localtunnels',
    hooks: {
      'astro:config:setup'({ command, updateConfig }) {
        if (enabled && command === 'dev') updateConfig({ vite: { plugins: [vitePlugin(options)] } })
      },
      'astro:server:start'({ logger }) {
        // The plugin holds the same tunnel.
        const { url } = HeldTunnel.of('vite', options)
        if (enabled && url !== undefined) logger.info(url)
      },
    },
  }
}
