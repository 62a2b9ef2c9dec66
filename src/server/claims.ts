// From what a client asks for to a tunnel: what its token allows, the name or the port, and the port opened.

import { type ErrorCode, TunnelError } from '../errors.ts'
import type { Register } from '../wire/control.ts'
import type { Member } from './member.ts'
import type { Rule } from './policy.ts'
import type { PortRanges } from './ports.ts'
import type { Claimant, PortFront, Tunnel, Tunnels } from './tunnels.ts'

type PortKind = 'tcp' | 'udp'
type Claimed = Member | ErrorCode

/** What claims need of the server. */
export interface ClaimHost {
  readonly tunnels: Tunnels
  /** The public ports of the server, by kind. */
  readonly ports: Readonly<Record<PortKind, PortRanges>>
  /** Whether TLS tunnels have a port. */
  readonly hasTlsPort: boolean
  /** Opens a tunnel's port. Throws, or rejects with, a TunnelError. */
  readonly open: Readonly<Record<PortKind, (tunnel: Tunnel) => PortFront | Promise<PortFront>>>
}

export function claim(wish: Register, rule: Rule, host: ClaimHost): Claimed | Promise<Claimed> {
  const { kind, name = '' } = wish
  switch (kind) {
    case 'http':
    case 'tls':
      if (kind === 'tls' && !host.hasTlsPort) return 'KIND_REFUSED'
      return rule.refusal(kind, name) ?? host.tunnels.claim(kind, name, wish)
    case 'udp':
      // A flow has no connection that could stay with one client.
      if (wish.pool !== undefined) return 'KIND_REFUSED'
      return claimPort(kind, wish, rule, host)
    case 'tcp':
      return claimPort(kind, wish, rule, host)
    case 'unknown':
      return 'KIND_REFUSED'
  }
}

async function claimPort(kind: PortKind, wish: Register, rule: Rule, host: ClaimHost): Promise<Claimed> {
  const ranges = host.ports[kind]
  if (ranges.isEmpty) return 'KIND_REFUSED'
  const refusal = rule.refusal(kind, undefined)
  if (refusal !== undefined) return refusal
  const { port: wished = 0, pool } = wish
  const isAllowed = (port: number) => ranges.includes(port) && rule.allowsPort(kind, port)
  if (wished !== 0) return isAllowed(wished) ? take(kind, wished, wish, host) : 'PORT_NOT_ALLOWED'
  for (const port of ranges.shuffled(randomFraction)) {
    if (!isAllowed(port)) continue
    const taken = await take(kind, port, { pool }, host)
    if (taken !== 'PORT_TAKEN') return taken
  }
  return 'PORTS_EXHAUSTED'
}

/** The port is the tunnel's before it is open: nobody else tries it meanwhile. */
async function take(kind: PortKind, port: number, claimant: Claimant, host: ClaimHost): Promise<Claimed> {
  const member = host.tunnels.claimPort(kind, port, claimant)
  if (typeof member === 'string' || member.tunnel.front !== undefined) return member
  const { tunnel } = member
  try {
    // Others of a pool may ask for it while it is being opened.
    tunnel.opening ??= Promise.resolve(host.open[kind](tunnel))
    tunnel.front = await tunnel.opening
    return member
  } catch (error) {
    member.remove()
    return error instanceof TunnelError ? error.code : 'INTERNAL'
  }
}

function randomFraction(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 0x1_0000_0000
}
