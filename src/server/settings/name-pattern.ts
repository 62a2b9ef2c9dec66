// Patterns for names of tunnels in the operator's lists: whole names, or with asterisks.

import { TunnelError } from '../../errors.ts'

/**
 * A pattern for names, `app`, `team-*`, or hosts, `*.customer.example`: an asterisk stands for any characters, dots included.
 */
export class NamePattern {
  readonly #pieces: readonly string[]

  /** Makes a pattern. `option` names its place for the message. Throws `OPTION_INVALID`. */
  constructor(text: string, option: string, isHost = false) {
    if (!(isHost ? /^[a-z0-9.*-]+$/i : /^[a-z0-9*-]+$/i).test(text))
      throw new TunnelError(
        'OPTION_INVALID',
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
