// Where a client dials from, also when it comes by way of proxies.

import { isIP } from 'node:net'
import type { RequestHead } from '../http/head.ts'

/**
 * The last address in X-Forwarded-For that is no trusted proxy's; without any, that of the connection. Each proxy adds
 * whom it saw at the end, so what stands in front of the first stranger is that stranger's own word.
 */
export function clientAddress(
  connected: string,
  head: RequestHead,
  isTrusted: (address: string) => boolean,
): string {
  if (!isTrusted(connected)) return connected
  const lines = head.headerList().filter(([name]) => name.toLowerCase() === 'x-forwarded-for')
  const hops = lines.flatMap(([, value]) => value.split(','))
  let address = connected
  for (const hop of hops.toReversed()) {
    const next = addressIn(hop)
    if (next === undefined) break
    address = next
    if (!isTrusted(address)) break
  }
  return address
}

/** `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1]:443`. */
function addressIn(hop: string): string | undefined {
  const text = hop.trim()
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? []
  const [, beforePort] = /^([\d.]+):\d+$/.exec(text) ?? []
  const address = bracketed ?? beforePort ?? text
  return isIP(address) === 0 ? undefined : address
}
