// Dials for probes of a public URL, which the server chooses. A probe must not lead the client to machines that the
// client can reach and the server cannot.

import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import type { Address, Dial } from '../../socket.ts'

/** The distance of an address: on this machine, in this network, or anywhere else. */
type Distance = 0 | 1 | 2

const THIS_MACHINE = networks('0.0.0.0/8', '127.0.0.0/8', '::/127')
const THIS_NETWORK = networks(
  ...['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16', '198.18.0.0/15'],
  ...['fc00::/7', 'fe80::/10'],
)

/**
 * Returns a dial for addresses that are at least as far away as the nearest of the servers. A name is dialled by the addresses
 * that were checked. Rejects nearer addresses without connecting. A proxy's host is checked only if it is an address.
 */
export function dialOutward(servers: readonly Address[], dial: Dial): Dial {
  return async (address, handler, signal) => {
    const { host = 'localhost', via } = address
    const least = Math.min(...(await Promise.all(servers.map(nearest))))
    if (least === 0) return dial(address, handler, signal)
    const addresses =
      via !== undefined && isIP(host) === 0 && host !== 'localhost' ? undefined : await addressesOf(host)
    if (addresses === undefined) return dial(address, handler, signal)
    let failure: unknown = new Error(`${host} is nearer than the server, and is not asked`)
    for (const one of addresses.filter(each => distanceOf(each) >= least)) {
      try {
        return await dial({ ...address, host: one }, handler, signal)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }
}

/** Returns the distance of a server. A server that cannot be looked up here is reached through a proxy, and may be anywhere. */
async function nearest({ host = 'localhost' }: Address): Promise<number> {
  const addresses = await addressesOf(host).catch(() => [])
  return Math.min(2, ...addresses.map(distanceOf))
}

async function addressesOf(host: string): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  if (host === 'localhost' || host.endsWith('.localhost')) return ['127.0.0.1']
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

function distanceOf(address: string): Distance {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  if (THIS_MACHINE.check(address, family)) return 0
  return THIS_NETWORK.check(address, family) ? 1 : 2
}

function networks(...ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
