// Lists of addresses and networks. A network contains only addresses of its own family: `::/0` contains every IPv6
// address and no IPv4 one, as in firewalls and routers. An operator who means both also writes `0.0.0.0/0`.

import { BlockList, isIP } from 'node:net'

export class Networks {
  /**
   * The IPv4 ranges. One `BlockList` for both families would match an IPv4 address with an IPv6 range that contains
   * its mapped form.
   */
  readonly #ipv4 = new BlockList()
  readonly #ipv6 = new BlockList()

  /** Adds an address or a CIDR range. Returns `false` if the text is neither. */
  add(entry: string): boolean {
    const network = networkOf(entry)
    if (network === undefined) return false
    const { address, isIPv4, bits } = network
    if (isIPv4) this.#ipv4.addSubnet(address, bits, 'ipv4')
    else this.#ipv6.addSubnet(address, bits, 'ipv6')
    return true
  }

  /** Whether the address is in a range. `false` for a text that is not an address. */
  has(address: string): boolean {
    const plain = plainAddress(address)
    const family = isIP(plain)
    return family === 6 ? this.#ipv6.check(plain, 'ipv6') : family === 4 && this.#ipv4.check(plain, 'ipv4')
  }
}

/** Whether `Networks.add` accepts the entry. */
export function isNetwork(entry: string): boolean {
  return networkOf(entry) !== undefined
}

function networkOf(entry: string) {
  const [given = '', prefix, more] = entry.split('/')
  const address = plainAddress(given)
  const family = isIP(address)
  if (family === 0 || more !== undefined || given.includes('%')) return undefined
  const isIPv4 = family === 4
  const most = isIPv4 ? 32 : 128
  if (prefix === undefined) return { address, isIPv4, bits: most }
  // ::ffff:10.0.0.0/104 is 10.0.0.0/8.
  const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) - (isIPv4 && given.includes(':') ? 96 : 0) : -1
  return bits >= 0 && bits <= most ? { address, isIPv4, bits } : undefined
}

/** Returns the IPv4 address of an IPv4-mapped one, however it is written. Zones are removed. */
export function plainAddress(address: string): string {
  if (!address.includes(':')) return address
  const zone = address.indexOf('%')
  const bare = zone < 0 ? address : address.slice(0, zone)
  if (isIP(bare) !== 6) return bare
  const [, dotted] = /^(?:0{0,4}:){2,6}ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare) ?? []
  if (dotted !== undefined) return dotted
  const [, high, low] = /^(?:0{0,4}:){2,6}ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(bare) ?? []
  if (high === undefined || low === undefined) return bare.toLowerCase()
  const number = Number.parseInt(high, 16) * 0x1_0000 + Number.parseInt(low, 16)
  return [24, 16, 8, 0].map(shift => (number >>> shift) & 0xff).join('.')
}
