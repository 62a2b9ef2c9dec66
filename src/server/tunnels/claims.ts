// Grants tunnels: checks what the token allows, finds the name or port, and opens the port.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { Register } from '../../wire/control.ts'
import type { OwnGuard } from '../contracts/guarding.ts'
import type { Claims } from '../contracts/servers.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import { ANYTHING, type Rule } from '../settings/policy.ts'
import type { PortRanges } from '../settings/ports.ts'
import type { Member } from './member.ts'
import { isRefusing } from './no-guards.ts'
import type { Claimant, PortFront, Tunnel } from './tunnel.ts'
import { destinationOf, labelOf, refusalOfName, type Tunnels } from './tunnels.ts'

type PortKind = 'tcp' | 'udp'
type Claimed = Member | ErrorCode

/** The number of ports tried for one registration before it is refused. The system may refuse ports that are free here. */
const MAX_TRIES = 16

/** The requested tunnel, or the existing one. */
export interface Wish
  extends Pick<Register, 'kind' | 'name' | 'port' | 'hostNames' | 'inbox' | 'wishes' | 'routes'> {
  readonly guard?: object | undefined
  /** Whether this is the connecting end of a private service, as `Tunnel.isEnd`. */
  readonly isEnd?: boolean
}

/** The client that asks: what its token allows, and what it has already. */
export interface Claiming {
  readonly rule: Rule
  readonly holder: QuotaOwner
  readonly guard?: OwnGuard | undefined
}

/** The settings that decide whether a tunnel is allowed. */
export interface ClaimTerms {
  readonly ports: Readonly<Record<PortKind, PortRanges>>
  readonly hasTlsPort: boolean
  /** The store of webhooks. `undefined` if there is none. */
  readonly inbox: object | undefined
  /** The names that no client may take. */
  readonly reservedNames: ReadonlySet<string>
  /** The domains of the server, longest first. */
  readonly domainsByLength: readonly string[]
}

/** The operations of the server that claims need. */
export interface ClaimHost {
  readonly tunnels: Tunnels
  /** The current settings, which a reload changes. */
  readonly terms: ClaimTerms
  /** Whether the operator forbids this name. Ports are names like `tcp-20000`. Default: none is forbidden. */
  isBlocked?(name: string): boolean
  /** Opens a tunnel's port. Throws, or rejects with, a TunnelError. */
  readonly open: Readonly<Record<PortKind, (tunnel: Tunnel) => PortFront | Promise<PortFront>>>
  /** The servers that decide which of them has a port. Default: this server has all ports. */
  readonly servers?: Claims | undefined
}

/** Returns why a tunnel of this kind, with this name or port, may not be. `undefined` if it may. Port 0: any. */
export function refusalOf(
  { kind, name = '', port = 0, guard, hostNames = [], inbox, isEnd = false }: Wish,
  rule: Rule,
  terms: ClaimTerms,
): ErrorCode | undefined {
  if (kind === 'connect' || isEnd) return rule.allowsConnect(labelOf(name)) ? undefined : 'NOT_ALLOWED'
  // The connecting end of a private service shows a token, so it needs no guard.
  if (rule.requiresGuard && kind !== 'private' && !isRefusing(guard)) return 'NOT_ALLOWED'
  // Any client could without a token fetch the stored webhooks.
  if (inbox !== undefined && (terms.inbox === undefined || rule.id === undefined)) return 'INBOX_REFUSED'
  switch (kind) {
    case 'http':
    case 'tls':
      if (kind === 'tls' && !terms.hasTlsPort) return 'KIND_REFUSED'
      return (
        rule.refusal(kind, name) ??
        (terms.reservedNames.has(name) ? 'NAME_RESERVED' : undefined) ??
        (hostNames.every(host => mayBeHostName(host, rule, terms)) ? undefined : 'NOT_ALLOWED')
      )
    case 'tcp':
    case 'udp': {
      if (terms.ports[kind].isEmpty) return 'KIND_REFUSED'
      const isAllowed = port === 0 || (terms.ports[kind].includes(port) && rule.allowsPort(kind, port))
      return rule.refusal(kind, undefined) ?? (isAllowed ? undefined : 'NOT_ALLOWED')
    }
    case 'private':
      return rule.refusal(kind, labelOf(name))
    case 'unknown':
      return 'KIND_REFUSED'
  }
}

/** Whether a host may be a custom domain. Hosts under the server's own domains are names, or the control host. */
function mayBeHostName(host: string, rule: Rule, { domainsByLength }: ClaimTerms): boolean {
  return destinationOf(host, domainsByLength).kind === 'unknown' && rule.allowsHost(host)
}

/** Returns the text of a refusal for the client's user: what happened, and the next step. */
export function refusalText(code: ErrorCode, wish: Wish, claiming: Claiming, terms: ClaimTerms): string {
  const isOfOthers = code === 'NOT_ALLOWED' && claiming.rule.onlyConnects
  const action = isOfOthers ? 'Use another token, or ask the operator for one with names.' : undefined
  return new TunnelError(code, detailOf(code, wish, claiming, terms), { action }).message
}

/** Returns the detail of a refusal. `undefined` if the meaning of the code is enough. */
function detailOf(
  code: ErrorCode,
  { kind, name = '', guard, hostNames = [] }: Wish,
  { rule, holder }: Claiming,
  terms: ClaimTerms,
): string | undefined {
  switch (code) {
    case 'NAME_TAKEN':
      return `Another client uses the name "${name}".`
    case 'KIND_REFUSED':
      return kind === 'tcp' || kind === 'udp' || kind === 'tls'
        ? `The server has no ${kind.toUpperCase()} tunnels.`
        : undefined
    case 'INBOX_REFUSED':
      return terms.inbox === undefined
        ? 'The server has no inbox.'
        : 'An inbox is for clients with a token: without one, any client could take the webhooks of others.'
    case 'NAME_RESERVED':
      return `The name "${name}" is reserved by the server.`
    case 'NOT_ALLOWED': {
      if (rule.onlyConnects)
        return 'The token is for connections to private services (connect), and opens no tunnels.'
      if (rule.requiresGuard && !isRefusing(guard))
        return 'The token allows only tunnels whose guard has an access rule or a sign-in method.'
      const host = hostNames.find(one => !mayBeHostName(one, rule, terms))
      if (host !== undefined)
        return `The token does not allow the host "${host}", or the host belongs to the server.`
      if ((kind !== 'tcp' && kind !== 'udp') || rule.refusal(kind, undefined) !== undefined) return undefined
      const own = rule.portsOf(kind)
      const ofToken =
        own === undefined ? '' : ` The token has ${own.text === '' ? 'none' : own.text} of them.`
      return `The public port is outside of the ranges of the server or the token: the server has ${terms.ports[kind].text}.${ofToken}`
    }
    case 'CLIENT_LIMIT':
      return (
        (kind === 'tcp' || kind === 'udp' ? holder.fullOf('ports') : undefined) ??
        holder.fullOf('tunnels') ??
        (hostNames.length > 0 ? holder.fullOf('hosts', hostNames.length) : undefined)
      )
    default:
      return undefined
  }
}

/** Claims a tunnel where a directory decides which server of a cluster has a name or port. */
export async function claimInCluster(
  wish: Register,
  claiming: Claiming,
  host: ClaimHost,
  servers: Claims,
): Promise<Claimed> {
  const { kind, name = '', hostNames = [], pool, resume } = wish
  if (kind === 'tcp' || kind === 'udp') return claim(wish, claiming, { ...host, servers })
  // A client that returns within its lease is already counted.
  const isBack = host.tunnels.find(name)?.memberHeldBy(resume) !== undefined
  const refusal =
    refusalOf(wish, claiming.rule, host.terms) ??
    refusalOfName(name, kind === 'private' ? kind : undefined) ??
    (isBack || claiming.holder.hasRoomFor('tunnels') ? undefined : 'CLIENT_LIMIT')
  if (refusal !== undefined) return refusal
  const claimed = await servers.claim([name, ...hostNames], resume, pool !== undefined, kind === 'tls')
  if (typeof claimed === 'string') return claimed
  const member = await claim(wish, claiming, host)
  if (typeof member !== 'string') member.giveSecret(claimed.secret)
  else
    for (const one of claimed.names)
      if (host.tunnels.find(one) === undefined && host.tunnels.hostNames.ownerOf(one) === undefined)
        servers.release(one)
  return member
}

export function claim(wish: Register, claiming: Claiming, host: ClaimHost): Claimed | Promise<Claimed> {
  const { kind, name = '', port = 0, resume, pool, poolResponse, hostNames = [] } = wish
  const refusal = refusalOf(wish, claiming.rule, host.terms)
  if (refusal !== undefined) return refusal
  const { holder, guard } = claiming
  const claimant = { resume, pool, poolResponse, holder, guard }
  if (kind === 'http' || kind === 'tls' || kind === 'private')
    return [name, ...hostNames].some(one => host.isBlocked?.(one))
      ? 'BLOCKED'
      : host.tunnels.claim(kind, name, { ...claimant, hostNames })
  // Datagrams have no connection that could stay with one client.
  if ((kind !== 'tcp' && kind !== 'udp') || (kind === 'udp' && pool !== undefined)) return 'KIND_REFUSED'
  if (port !== 0) return holder.during(() => take(kind, port, claimant, host))
  return holder.during(() => claimAnyPort(kind, { pool, holder, guard }, claiming.rule, host))
}

async function claimAnyPort(
  kind: PortKind,
  claimant: Claimant,
  rule: Rule,
  host: ClaimHost,
): Promise<Claimed> {
  const { terms, tunnels } = host
  const [server, token] = [terms.ports[kind], rule.portsOf(kind)]
  if (!claimant.holder.hasRoomFor('ports')) return 'CLIENT_LIMIT'
  const free = tunnels.ports[kind]
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const now = performance.now()
    const port = free.find(server, token, randomFraction(), now)
    if (port === undefined) break
    const taken = await take(kind, port, claimant, host)
    if (taken !== 'PORT_TAKEN' && taken !== 'BLOCKED') return taken
    free.avoid(port, now)
  }
  return token === undefined || server.overlaps(token) ? 'CLIENT_LIMIT' : 'NOT_ALLOWED'
}

/** Claims a port; in a cluster, first for this server in the directory. */
async function take(kind: PortKind, port: number, claimant: Claimant, host: ClaimHost): Promise<Claimed> {
  const name = `${kind}-${port}`
  const { servers, tunnels } = host
  if (host.isBlocked?.(name)) return 'BLOCKED'
  if (servers === undefined) return takeHere(kind, port, claimant, host)
  const claimed = await servers.claim([name], claimant.resume, claimant.pool !== undefined)
  if (typeof claimed === 'string') return claimed
  const member = await takeHere(kind, port, claimant, host)
  if (typeof member !== 'string') member.giveSecret(claimed.secret)
  else if (tunnels.find(name) === undefined) servers.release(name)
  return member
}

/** Claims a port on this server. The tunnel has the port before it is open, so that no other registration tries it. */
async function takeHere(kind: PortKind, port: number, claimant: Claimant, host: ClaimHost): Promise<Claimed> {
  const member = host.tunnels.claimPort(kind, port, claimant)
  if (typeof member === 'string' || member.tunnel.front !== undefined) return member
  const { tunnel } = member
  try {
    // Other clients of a pool may ask for the port while it is being opened.
    tunnel.opening ??= Promise.resolve(host.open[kind](tunnel))
    const front = await tunnel.opening
    if (tunnel.members.includes(member)) {
      tunnel.front = front
      return member
    }
    // While the port was opened, a reload revoked it or the server stopped: no tunnel is left that would close it.
    const code = refusalOf({ kind, port }, ANYTHING, host.terms) ?? 'SERVER_DRAINING'
    if (tunnel.members.length === 0) front.stop(code)
    return code
  } catch (error) {
    member.remove()
    return error instanceof TunnelError ? error.code : 'INTERNAL'
  }
}

function randomFraction(): number {
  return (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 0x1_0000_0000
}
