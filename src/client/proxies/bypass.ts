// NO_PROXY: the addresses for which the proxies of the environment are not used.

import { Networks } from '../../networks.ts'
import type { Address } from '../../socket.ts'

/**
 * Parses a list separated by commas or blanks: `host`, `.suffix`, `*.suffix`, each with an optional `:port`,
 * addresses, CIDR ranges, and `*` for everything. As in Go and unlike curl, `.suffix` means only names below it. An
 * invalid entry matches nothing. This machine is on every list.
 */
export function bypassList(text: string): (address: Address) => boolean {
  const ranges = new Networks()
  ranges.add('127.0.0.0/8')
  ranges.add('::1')
  const rules: Rule[] = []
  for (const item of text.toLowerCase().split(/[\s,]+/)) {
    if (item !== '' && !ranges.add(item.replace(/^\[(.*)\](?=\/|$)/, '$1'))) rules.push(ruleOf(item))
  }
  return ({ host = 'localhost', port, unix }) => {
    if (unix !== undefined) return true
    const name = host.toLowerCase().replace(/\.$/, '')
    if (name === 'localhost' || name.endsWith('.localhost')) return true
    if (ranges.has(name)) return true
    return rules.some(rule => {
      if (rule.port !== undefined && rule.port !== port) return false
      if (rule.host === '*') return true
      return rule.host.startsWith('.') ? name.endsWith(rule.host) : name === rule.host
    })
  }
}

interface Rule {
  /** The host. A dot at its beginning means names below it. */
  readonly host: string
  readonly port: number | undefined
}

function ruleOf(item: string): Rule {
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]*)\]|(.*?))(?::(\d{1,5}))?$/.exec(item) ?? []
  const host = (bracketed ?? plain).replace(/^\*\./, '.').replace(/(.)\.$/, '$1')
  return { host, port: port === undefined ? undefined : Number(port) }
}
