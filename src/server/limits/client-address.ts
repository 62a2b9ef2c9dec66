// Who asks, also by way of proxies: a client that dials, or a visitor of a pool.

import { isIP } from 'node:net'
import type { RequestHead } from '../../http/head.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { Rewrite, Visit } from '../contracts/upstream.ts'

/**
 * The last address in X-Forwarded-For that is not a trusted proxy's; without any, that of the connection. Each proxy adds the
 * address that it sees at the end, so the one before the last untrusted address is only a claim of that sender.
 */
export function clientAddress(
  connected: string,
  head: RequestHead,
  isTrusted: (address: string) => boolean,
): string {
  if (!isTrusted(connected)) return connected
  let address = connected
  for (const hop of hopsIn(head).toReversed()) {
    const next = addressIn(hop)
    if (next === undefined) break
    address = next
    if (!isTrusted(address)) break
  }
  return address
}

/** The network of who asks, as the last proxy in front saw it. `rewrite`: what the tunnel's client wants, whose hop is at hand. */
export function visitorOf(visit: Pick<Visit, 'head' | 'hop'>, rewrite: Rewrite | undefined): string {
  const { address, trusted } = visit.hop(rewrite)
  return networkOf(clientAddress(address, visit.head, one => trusted && one === address))
}

/** All X-Forwarded-For lines as one list. */
function hopsIn({ fields }: RequestHead): string[] {
  const hops: string[] = []
  for (let line = 0; line < fields.count; line++)
    if (fields.isNamed(line, 'x-forwarded-for')) hops.push(...fields.value(line).split(','))
  return hops
}

/** Returns the address in `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1` or `[2001:db8::1]:443`. */
function addressIn(hop: string): string | undefined {
  const text = hop.trim()
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? []
  const [, beforePort] = /^([\d.]+):\d+$/.exec(text) ?? []
  const address = bracketed ?? beforePort ?? text
  return isIP(address) === 0 ? undefined : address
}
