// Decides which plugins of the server apply to a tunnel: all of them, or those whose list of names has it.

import type { ForTunnels } from '../../plugin.ts'
import { NamePattern } from './name-pattern.ts'

const patterns = new WeakMap<readonly string[], readonly NamePattern[]>()

/** Throws `OPTION_INVALID` for an invalid list. */
export function checkPlugins(plugins: readonly ForTunnels[], option: string): void {
  for (const { tunnels } of plugins)
    if (tunnels !== undefined)
      patterns.set(
        tunnels,
        tunnels.map(text => new NamePattern(text, `${option}.tunnels`)),
      )
}

/** Returns the plugins for a tunnel. If all apply, this is the list itself, so that most requests cost no copy. */
export function pluginsFor<Plugin extends ForTunnels>(
  plugins: readonly Plugin[],
  tunnel: string,
): readonly Plugin[] {
  return plugins.every(plugin => isFor(plugin, tunnel))
    ? plugins
    : plugins.filter(plugin => isFor(plugin, tunnel))
}

function isFor({ tunnels }: ForTunnels, tunnel: string): boolean {
  if (tunnels === undefined) return true
  return patterns.get(tunnels)?.some(pattern => pattern.fits(tunnel)) ?? tunnels.includes(tunnel)
}
