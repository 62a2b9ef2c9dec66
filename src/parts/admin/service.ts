// The operator's actions on a server, by the API or by a command.

import { type ErrorCode, errorOf, TunnelError } from '../../errors.ts'
import { addToken, type NewToken, rotateToken } from '../../kept-tokens.ts'
import type { AuditEntry, Ban, Span, Traffic } from '../../operations.ts'
import type { Observer } from '../../plugin.ts'
import type { PartServer, WholeServer } from '../../server/contracts/part.ts'
import type { ClusterMember, ServerReport, Servers } from '../../server/contracts/servers.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import type { ServerStats } from '../../server/settings/stats.ts'
import type { Tunnel } from '../../server/tunnels/tunnel.ts'
import type { TokenStore } from '../../tokens.ts'
import type { FarRows } from './far-rows.ts'
import { mergedTunnels } from './merged.ts'
import type { Metrics } from './metrics.ts'
import type { AdminSettings } from './options.ts'
import { type Probe, probe } from './probes.ts'
import { ProcessState } from './process-state.ts'
import { type ClusterGauges, notAfterOf, prometheusText } from './prometheus.ts'
import { addedTraffic, MARK_MS, Recent } from './recent.ts'
import type { ClientRow, ProbeView, RecentRow, TokenRow, TunnelRow } from './rows.ts'
import { TrafficLog } from './traffic-log.ts'
import { clientRow, probeView, tokenRow, tunnelRow } from './view.ts'

/** A server of the cluster with its last report. An older version reports nothing. */
export interface NodeRow extends ClusterMember, Partial<ServerReport> {}

/** The time in milliseconds between searches for tunnels that need a probe. */
const PROBE_LOOK_MS = 1_000
/** The time in milliseconds between searches for bans of other workers. */
const BANS_LOOK_MS = 500
const MAX_PROBES = 16

export class AdminService {
  readonly #server: PartServer
  readonly #whole: WholeServer
  readonly #settings: AdminSettings
  readonly #metrics: Metrics
  readonly #process = new ProcessState()
  readonly #book: TrafficLog | undefined
  readonly #recent: Recent
  readonly #far: () => FarRows | undefined
  readonly #probes = new WeakMap<Tunnel, Probe>()
  readonly #probing = new Set<Tunnel>()
  readonly #timers: ReturnType<typeof setInterval>[] = []

  /** Makes the service. `far`: the reports of other servers. */
  constructor(
    server: PartServer,
    whole: WholeServer,
    settings: AdminSettings,
    metrics: Metrics,
    far: () => FarRows | undefined,
  ) {
    this.#server = server
    this.#whole = whole
    this.#settings = settings
    this.#metrics = metrics
    this.#recent = new Recent(metrics)
    this.#far = far
    this.#every(MARK_MS, () => {
      this.#harvest()
      this.#recent.mark()
    })
    const { store, probeMs } = settings
    if (store !== undefined) this.#book = new TrafficLog(metrics, store, () => this.#harvest(), this.failed)
    if (store !== undefined) this.#every(BANS_LOOK_MS, () => this.#refreshBans())
    if (probeMs > 0) this.#every(Math.min(PROBE_LOOK_MS, probeMs), () => this.#probeSilent())
  }

  #every(ms: number, run: () => void): void {
    const timer = setInterval(run, ms)
    timer.unref()
    this.#timers.push(timer)
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#process.stop()
    this.#book?.stop()
  }

  readonly failed = (cause: unknown): void => this.#server.failed(errorOf(cause))

  /** Called when a request showed a wrong token. */
  refused(remoteAddress: string, code: ErrorCode): void {
    this.#metrics.refused(code)
    this.#server.emit('refused', { remoteAddress, wire: 'admin', code, kind: 'admin' })
  }

  get basePath(): string {
    return this.#server.settings.basePath
  }

  /** The first domain, by which an operator distinguishes servers' pages. */
  get domain(): string {
    return this.#server.settings.domains[0] ?? ''
  }

  get limits(): Bounds {
    return this.#server.limits
  }

  // ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────

  get stats(): ServerStats {
    return this.#whole.stats()
  }

  /** The recent traffic of all tunnels of this server. */
  get recent(): RecentRow {
    this.#harvest()
    return this.#recent.total
  }

  /** Lists the tunnels of all servers of the cluster. */
  tunnels(): readonly TunnelRow[] {
    return mergedTunnels([...this.ownTunnels(), ...(this.#far()?.tunnels() ?? [])])
  }

  ownTunnels(): readonly TunnelRow[] {
    this.#harvest()
    return this.#server.tunnels.all().map(tunnel => this.#row(tunnel))
  }

  tunnel(name: string): TunnelRow | undefined {
    this.#harvest()
    const own = this.#server.tunnels.find(name)
    const far = (this.#far()?.tunnels() ?? []).filter(row => row.name === name)
    return mergedTunnels([...(own ? [this.#row(own)] : []), ...far])[0]
  }

  /** Lists the clients of all servers of the cluster. */
  clients(): readonly ClientRow[] {
    return [...this.ownClients(), ...(this.#far()?.clients() ?? [])]
  }

  ownClients(): readonly ClientRow[] {
    const tunnels = this.#server.tunnels.all()
    return [...this.#whole.clients].map(client => clientRow(client, tunnels))
  }

  /**
   * Resolves with the traffic of a tunnel, of one server, or of all servers that report; with `''` as the tunnel, with the times
   * when this server measured. `undefined` if nothing is stored, or a server with the tunnel does not report.
   */
  async traffic(
    span: Span,
    limit: number,
    { tunnel, server }: { readonly tunnel?: string; readonly server?: string },
  ): Promise<readonly Traffic[] | undefined> {
    this.#book?.write()
    const { store } = this.#settings
    if (tunnel !== undefined) {
      const cluster = this.#far()
      const far = cluster === undefined ? [] : await cluster.trafficOf(tunnel, span)
      if (far?.length === 0) return store?.traffic(span, 0, limit, tunnel)
      return far && addedTraffic([...this.ownTraffic(span, 0, limit, tunnel), ...far]).slice(0, limit)
    }
    const isOwn = server === undefined || server === this.#server.servers?.node
    const own = isOwn ? this.ownTraffic(span, 0, limit) : []
    const far = this.#far()?.traffic(span, server) ?? []
    if (store === undefined && far.length === 0) return undefined
    return addedTraffic([...own, ...far]).slice(0, limit)
  }

  ownTraffic(span: Span, fromMs: number, limit: number, tunnel?: string): readonly Traffic[] {
    return this.#settings.store?.traffic(span, fromMs, limit, tunnel) ?? []
  }

  audit(beforeMs: number, limit: number): readonly AuditEntry[] | undefined {
    return this.#settings.audit?.entries(beforeMs, limit)
  }

  /** Resolves with the servers of the cluster. `undefined` if the server is alone. Rejects with `CLUSTER_UNREACHABLE`. */
  nodes(): Promise<readonly NodeRow[]> | undefined {
    const { servers } = this.#server
    return servers
      ?.members()
      .then(members => members.map(member => ({ ...member, ...servers.shared?.reportOf(member.id) })))
  }

  certificates(): readonly { name: string; notAfter: string; daysLeft: number }[] {
    return this.#certificates().map(({ name, notAfterMs }) => ({
      name,
      notAfter: new Date(notAfterMs).toISOString(),
      daysLeft: Math.floor((notAfterMs - Date.now()) / 86_400_000),
    }))
  }

  metricsText(): string {
    this.#harvest()
    const { clients } = this.#whole
    const { counters, quotas: holdings, limits, settings, servers } = this.#server
    const { counts } = holdings
    const byWire = { streams: 0, json: 0 }
    let stalls = counters.creditStalls
    for (const client of clients) {
      byWire[client.wire]++
      stalls += client.creditStalls
    }
    const tunnels = { http: 0, tcp: 0, udp: 0, tls: 0, private: 0 }
    for (const { kind } of this.#server.tunnels.all()) tunnels[kind]++
    const { stats } = this
    return prometheusText(this.#metrics, {
      stats,
      clients: byWire,
      streams: counts.streams,
      bufferedBytes: counts.bytes,
      creditStalls: stalls,
      tunnels,
      limits: {
        maxVisitors: [this.#whole.visitorCount, limits.maxVisitors],
        maxClients: [clients.size, limits.maxClients],
        maxAllTunnels: [counts.tunnels, limits.maxAllTunnels],
        maxAllStreams: [counts.streams, limits.maxAllStreams],
        maxAllLinks: [counts.links, limits.maxAllLinks],
        maxAllBufferedBytes: [counts.bytes, limits.maxAllBufferedBytes],
        maxAllFlows: [stats.flows, limits.maxAllFlows],
      },
      certificates: this.#certificates(),
      process: this.#process,
      cluster: clusterOf(servers),
      droppedLogLines: droppedLinesOf(settings.observers),
    })
  }

  /** Lists the tokens. `undefined` if the server stores none. */
  tokens(): readonly TokenRow[] | undefined {
    return this.#settings.tokens?.list().map(tokenRow)
  }

  // ── Doing ──────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Revokes the name or port, and its page for visitors; its client gets the reason. A running client may request it
   * again: to prevent that, ban the name.
   */
  closeTunnel(name: string): { readonly closed: string } | undefined {
    if (!this.#server.closeTunnel(name)) return undefined
    this.#note('tunnel.close', name)
    return { closed: name }
  }

  closeClient(number: number): { readonly closed: number } | undefined {
    for (const client of this.#whole.clients) {
      if (client.number !== number) continue
      this.#note('client.close', String(number), client.remoteAddress)
      client.close('BLOCKED')
      return { closed: number }
    }
    return undefined
  }

  /** Replaces this process. Resolves with the number of the new one. Throws `ADMIN_INVALID` if that is impossible. */
  async upgrade(): Promise<number> {
    const { upgrade } = this.#settings
    if (upgrade === undefined)
      throw new TunnelError('ADMIN_INVALID', 'This server is part of a program, and cannot replace it.')
    this.#note('server.upgrade', '')
    return upgrade.run()
  }

  async probe(name: string): Promise<ProbeView | undefined> {
    const tunnel = this.#server.tunnels.find(name)
    const found = tunnel && (await this.#probe(tunnel))
    return found && probeView(found)
  }

  /** Adds a ban and cuts the visitors and clients that it names, as far as the server knows them. */
  ban(ban: Omit<Ban, 'id'>): Ban {
    if (this.#server.bans === undefined) throw new TunnelError('ADMIN_INVALID', 'This server keeps no bans.')
    const added = this.#server.bans.add(ban)
    this.#note(`ban.${added.kind}`, added.value, added.reason)
    return added
  }

  /** Lists all bans, including those of other workers. */
  allBans(): readonly Ban[] {
    this.#refreshBans()
    return this.#server.bans?.all ?? []
  }

  #refreshBans(): void {
    try {
      this.#server.bans?.refresh()
    } catch (error) {
      this.failed(error)
    }
  }

  removeBan(id: number): { readonly removed: number } | undefined {
    if (this.#server.bans?.remove(id) !== true) return undefined
    this.#note('ban.remove', String(id))
    return { removed: id }
  }

  /** Adds a token, whose secret is shown only in this result. */
  addToken(token: NewToken): { readonly name: string; readonly token: string } {
    const secret = addToken(this.#tokenStore(), token)
    this.#server.servers?.shared?.tokensChanged()
    this.#note('token.add', token.name)
    return { name: token.name, token: secret }
  }

  rotateToken(name: string): { readonly name: string; readonly token: string } | undefined {
    const secret = rotateToken(this.#tokenStore(), name)
    if (secret === undefined) return undefined
    this.#server.servers?.shared?.tokensChanged()
    this.#note('token.rotate', name)
    return { name, token: secret }
  }

  revokeToken(name: string): { readonly revoked: string } | undefined {
    if (!this.#tokenStore().remove(name)) return undefined
    this.#server.servers?.shared?.tokensChanged()
    this.#note('token.revoke', name)
    return { revoked: name }
  }

  #tokenStore(): TokenStore {
    const { tokens } = this.#settings
    if (tokens !== undefined) return tokens
    throw new TunnelError('ADMIN_INVALID', 'The server keeps no tokens: start it with --tokens-db.')
  }

  #note(action: string, subject: string, detail?: string): void {
    const entry = { atMs: Date.now(), action, actor: 'admin', subject, ...(detail && { detail }) }
    this.#settings.audit?.note(entry)
  }

  // ── Probes ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Probes the apps of tunnels without a response for some time. */
  #probeSilent(): void {
    const { probeMs } = this.#settings
    this.#harvest()
    const now = Date.now()
    for (const tunnel of this.#server.tunnels.all()) {
      if (this.#probing.size >= MAX_PROBES) return
      const provenAtMs = this.#metrics.series.get(tunnel.name)?.provenAtMs ?? 0
      const probedAtMs = this.#probes.get(tunnel)?.atMs ?? 0
      if (now - Math.max(provenAtMs, probedAtMs) >= probeMs) void this.#probe(tunnel)
    }
  }

  async #probe(tunnel: Tunnel): Promise<Probe | undefined> {
    const { upstream, serverProbe } = tunnel
    if (tunnel.kind !== 'http' || upstream === undefined || this.#probing.has(tunnel)) return undefined
    this.#probing.add(tunnel)
    try {
      const host = new URL(this.#whole.urlOf(tunnel)).host
      const result = await probe(upstream, host, serverProbe)
      this.#probes.set(tunnel, result)
      if (result.status > 0) this.#metrics.of(tunnel.name).provenAtMs = Date.now()
      return result
    } finally {
      this.#probing.delete(tunnel)
    }
  }

  #row(tunnel: Tunnel): TunnelRow {
    const { name } = tunnel
    const url = this.#whole.urlOf(tunnel)
    return tunnelRow(tunnel, url, this.#metrics, this.#recent.of(name), this.#probes.get(tunnel))
  }

  #certificates(): readonly { name: string; notAfterMs: number }[] {
    const { tls, certificates, domains } = this.#server.settings
    if (certificates?.list !== undefined)
      return certificates.list().map(({ names: [name = ''], notAfterMs }) => ({ name, notAfterMs }))
    const notAfterMs = tls && notAfterOf(tls.cert)
    return notAfterMs === undefined ? [] : [{ name: domains[0] ?? '', notAfterMs }]
  }

  /** Adds the requests that lanes have served to the metrics. */
  #harvest(): void {
    this.#server.tunnels.lanes.harvest()
  }
}

/** Returns the state of the cluster. `undefined` if the server is alone, or a worker of this machine. */
function clusterOf(servers: Servers | undefined): ClusterGauges | undefined {
  if (servers?.shared === undefined) return undefined
  const { isInTouch, inFlight, shared } = servers
  return { servers: shared.count, isInTouch, inFlight, entries: shared.sizes }
}

/** Returns the number of dropped lines of access logs. `undefined` without a log. */
function droppedLinesOf(observers: readonly Observer[]): number | undefined {
  let dropped: number | undefined
  for (const observer of observers)
    if ('droppedLines' in observer && typeof observer.droppedLines === 'number')
      dropped = (dropped ?? 0) + observer.droppedLines
  return dropped
}
