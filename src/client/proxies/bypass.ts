// NO_PROXY: the addresses that no proxy of the environment leads to.

import { BlockList, isIP } from 'node:net'
import type { Address } from '../../socket.ts'

/**
 * Reads a list separated by commas or blanks: `host`, `.suffix`, `*.suffix`, each with `:port` if wanted, addresses,
 * CIDR ranges, and `*` for everything. As with Go and unlike curl, `.suffix` is names below it only. What cannot be
 * read names nothing. This machine is on every list.
 */
export function bypassList(text: string): (address: Address) => boolean {
  const ranges = new BlockList()
  ranges.addSubnet('127.0.0.0', 8, 'ipv4')
  ranges.addAddress('::1', 'ipv6')
  const rules: Rule[] = []
  for (const item of text.toLowerCase().split(/[\s,]+/)) {
    if (item !== '' && !addRange(ranges, item)) rules.push(ruleOf(item))
  }
  return ({ host = 'localhost', port, unix }) => {
    if (unix !== undefined) return true
    const name = host.toLowerCase().replace(/\.$/, '')
    if (name === 'localhost' || name.endsWith('.localhost')) return true
    const family = isIP(name)
    if (family !== 0 && ranges.check(name, family === 4 ? 'ipv4' : 'ipv6')) return true
    return rules.some(rule => {
      if (rule.port !== undefined && rule.port !== port) return false
      if (rule.host === '*') return true
      return rule.host.startsWith('.') ? name.endsWith(rule.host) : name === rule.host
    })
  }
}

interface Rule {
  /** With a dot in front: names below it. */
  readonly host: string
  readonly port: number | undefined
}

function ruleOf(item: string): Rule {
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]*)\]|(.*?))(?::(\d{1,5}))?$/.exec(item) ?? []
  const host = (bracketed ?? plain).replace(/^\*\./, '.').replace(/(.)\.$/, '$1')
  return { host, port: port === undefined ? undefined : Number(port) }
}

/** Whether it is an address or a range of them, without a port. */
function addRange(ranges: BlockList, item: string): boolean {
  const [address = '', bits, ...rest] = item.split('/')
  const bare = address.replace(/^\[(.*)\]$/, '$1')
  const family = isIP(bare)
  if (family === 0 || rest.length > 0) return false
  const type = family === 4 ? 'ipv4' : 'ipv6'
  if (bits === undefined) ranges.addAddress(bare, type)
  else if (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)) {
    ranges.addSubnet(bare, Number(bits), type)
  } else return false
  return true
}
