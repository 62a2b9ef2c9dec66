// Decides which plugins of the server apply to a tunnel: all of them, or those whose list of names has it.

import { optionInvalid } from '../../errors.ts'
import type { ForTunnels } from '../../plugin.ts'

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

/** A pattern for names, `app`, `team-*`, or hosts, `*.customer.example`: an asterisk stands for any characters, dots included. */
export class NamePattern {
  readonly #pieces: readonly string[]

  /** Makes a pattern. `option` names its place for the message. Throws `OPTION_INVALID`. */
  constructor(text: string, option: string, isHost = false) {
    if (!(isHost ? /^[a-z0-9.*-]+$/i : /^[a-z0-9*-]+$/i).test(text))
      throw optionInvalid(
        `${option}: "${text}" is not ${isHost ? 'a host or a pattern such as *.customer.example' : 'a name or a pattern such as team-*'}.`,
      )
    this.#pieces = text.toLowerCase().split('*')
  }

  /** Whether a name matches. Needs one pass; as a regular expression, a few asterisks could take very long. */
  fits(name: string): boolean {
    const [first = '', ...rest] = this.#pieces
    const last = rest.pop()
    if (last === undefined) return name === first
    if (!name.startsWith(first) || !name.endsWith(last)) return false
    let at = first.length
    for (const piece of rest) {
      const found = name.indexOf(piece, at)
      if (found === -1) return false
      at = found + piece.length
    }
    return at + last.length <= name.length
  }
}
