// From what a client asks for to a tunnel: what its token allows, the name or the port, and the port opened.

import { type ErrorCode, TunnelError } from '../errors.ts'
import type { Register } from '../wire/control.ts'
import type { Member } from './member.ts'
import type { Rule } from './policy.ts'
import type { PortRanges } from './ports.ts'
import type { Claimant, PortFront, Tunnel, Tunnels } from './tunnels.ts'

type PortKind = 'tcp' | 'udp'
type Claimed = Member | ErrorCode

/** What decides whether a tunnel may be. */
export interface ClaimTerms {
  /** The public ports of the server, by kind. */
  readonly ports: Readonly<Record<PortKind, PortRanges>>
  /** Whether TLS tunnels have a port. */
  readonly hasTlsPort: boolean
  /** Names that no client may take. */
  readonly reservedNames: ReadonlySet<string>
}

/** What claims need of the server. */
export interface ClaimHost {
  readonly tunnels: Tunnels
  /** Those of now: they change when the server reloads. */
  readonly terms: ClaimTerms
  /** Opens a tunnel's port. Throws, or rejects with, a TunnelError. */
  readonly open: Readonly<Record<PortKind, (tunnel: Tunnel) => PortFront | Promise<PortFront>>>
}

/** Why a tunnel of this kind, with this name or port, may not be; `undefined`: it may. Port 0: any. */
export function refusalOf(
  { kind, name = '', port = 0 }: Pick<Register, 'kind' | 'name' | 'port'>,
  rule: Rule,
  terms: ClaimTerms,
): ErrorCode | undefined {
  switch (kind) {
    case 'http':
    case 'tls':
      if (kind === 'tls' && !terms.hasTlsPort) return 'KIND_REFUSED'
      return rule.refusal(kind, name) ?? (terms.reservedNames.has(name) ? 'NAME_RESERVED' : undefined)
    case 'tcp':
    case 'udp': {
      if (terms.ports[kind].isEmpty) return 'KIND_REFUSED'
      const isAllowed = port === 0 || (terms.ports[kind].includes(port) && rule.allowsPort(kind, port))
      return rule.refusal(kind, undefined) ?? (isAllowed ? undefined : 'PORT_NOT_ALLOWED')
    }
    case 'unknown':
      return 'KIND_REFUSED'
  }
}

export function claim(wish: Register, rule: Rule, host: ClaimHost): Claimed | Promise<Claimed> {
  const { kind, name = '', port = 0 } = wish
  const refusal = refusalOf(wish, rule, host.terms)
  if (refusal !== undefined) return refusal
  if (kind === 'http' || kind === 'tls') return host.tunnels.claim(kind, name, wish)
  // A flow has no connection that could stay with one client.
  if (kind === 'unknown' || (kind === 'udp' && wish.pool !== undefined)) return 'KIND_REFUSED'
  return port === 0 ? claimAnyPort(kind, wish, rule, host) : take(kind, port, wish, host)
}

async function claimAnyPort(
  kind: PortKind,
  { pool }: Register,
  rule: Rule,
  host: ClaimHost,
): Promise<Claimed> {
  const { ports } = host.terms
  let refusal: ErrorCode = 'PORT_NOT_ALLOWED'
  for (const port of ports[kind].shuffled(randomFraction)) {
    if (!rule.allowsPort(kind, port)) continue
    const taken = await take(kind, port, { pool }, host)
    if (taken !== 'PORT_TAKEN') return taken
    refusal = 'PORTS_EXHAUSTED'
  }
  return refusal
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
