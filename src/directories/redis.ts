// A directory in Redis or Valkey, for servers on several machines. Visitors' bytes never pass through it.

import type { Redis, RedisOptions } from 'ioredis'
import type {
  Beat,
  Directory,
  DirectoryListener,
  DirectoryTimes,
  Hold,
  LostClaim,
  NameOutcome,
  NameWish,
  Node,
  Place,
} from '../directory.ts'
import { errorOf, optionInvalid, type TunnelError } from '../errors.ts'
import { BEAT, CLAIM, FIND, HELD, NODES, RELEASE, RESTORE, SECRET } from './redis-scripts.ts'
import { RedisTables } from './redis-tables.ts'

export interface RedisDirectoryOptions {
  /**
   * The address: `redis://user:password@host:6379/0`, `rediss://` for TLS, `unix:/path`; or Sentinels:
   * `sentinel://a:26379,b:26379/<master>`.
   */
  readonly url: string
  /** The prefix of all keys. Default `localtunnels`. */
  readonly prefix?: string
  /** The PEM text of the authority that signs its certificate, in place of the system's, for `rediss:`. */
  readonly ca?: string
  /** Called when the connection failed or is back. Default: does nothing. */
  readonly failed?: (error: Error) => void
}

/** The time in milliseconds after which a command without a response has failed. */
const COMMAND_MS = 2_000
/** The pauses in milliseconds between attempts to connect. */
const RETRY_MS = [100, 200, 500, 1_000] as const
/** The number of holds in one call of a script, which blocks Redis for about 4 ms. */
const HOLDS_AT_ONCE = 200

interface Scripts {
  ltBeat(prefix: string, ...args: readonly (string | number)[]): Promise<readonly [number, number]>
  ltClaim(prefix: string, ...args: readonly (string | number)[]): Promise<readonly [number, number]>
  ltRestore(prefix: string, ...args: readonly (string | number)[]): Promise<readonly string[]>
  ltRelease(prefix: string, ...args: readonly (string | number)[]): Promise<number>
  ltFind(prefix: string, name: string): Promise<readonly string[]>
  ltHeld(prefix: string, ...names: readonly string[]): Promise<readonly string[]>
  ltNodes(prefix: string): Promise<readonly string[]>
  ltSecret(prefix: string, fresh: string): Promise<string>
}

export class RedisDirectory implements Directory {
  readonly tables: RedisTables
  readonly #commands: Connection & Scripts
  /** The listening connection, which can send no other commands. */
  readonly #changes: Connection
  readonly #prefix: string
  /** The address without the login. */
  readonly #label: string
  /** Why there is no connection. The error of a refused command does not contain it. */
  #fault: Error | undefined
  #isClosed = false

  /** Opens the directory. Connects at once, and reconnects until it is closed. Throws `OPTION_INVALID` for an invalid URL. */
  static async open(options: RedisDirectoryOptions): Promise<RedisDirectory> {
    const connection = connectionOf(options)
    const { Redis } = await load()
    const open = (): Connection => new Redis(connection)
    return new RedisDirectory(open(), open(), options)
  }

  private constructor(commands: Connection, changes: Connection, options: RedisDirectoryOptions) {
    const scripts = { BEAT, CLAIM, RESTORE, RELEASE, FIND, HELD, NODES, SECRET }
    for (const [name, lua] of Object.entries(scripts))
      commands.defineCommand(`lt${name[0]}${name.slice(1).toLowerCase()}`, { numberOfKeys: 1, lua })
    this.#commands = commands as Connection & Scripts
    this.#changes = changes
    this.#prefix = `${options.prefix ?? 'localtunnels'}:`
    this.tables = new RedisTables(commands, changes, this.#prefix)
    this.#label = labelOf(options.url)
    for (const one of [commands, changes])
      one.on('error', (error: Error) => {
        // A failed write says less than the error before it.
        if (this.#fault === undefined || !('code' in error && error.code === 'EPIPE')) this.#fault = error
        options.failed?.(error)
      })
    commands.on('ready', () => {
      this.#fault = undefined
    })
  }

  explain(error: unknown): string {
    const cause = this.#causeOf(error)
    const says = cause.name === 'ReplyError' ? 'says' : 'cannot be reached'
    return `The Redis of the cluster, ${this.#label}, ${says}: ${reasonOf(cause)}.`
  }

  /** Returns the next step if waiting for Redis does not help. */
  adviceFor(error: unknown): string | undefined {
    const { message } = this.#causeOf(error)
    if (SHARDS.test(message)) return SHARDS_ADVICE
    return LOGIN.test(message) ? LOGIN_ADVICE : undefined
  }

  /** Whether Redis replied and waiting does not help: a login or a right is missing. */
  isRefused(error: unknown): boolean {
    const cause = this.#causeOf(error)
    return cause.name === 'ReplyError' && !PASSING.test(cause.message)
  }

  /** Returns why there is no connection, if a command failed because of that. */
  #causeOf(error: unknown): Error {
    const cause = errorOf(error)
    return cause.name === 'ReplyError' ? cause : (this.#fault ?? cause)
  }

  async listen(listener: DirectoryListener): Promise<() => void> {
    const channel = `${this.#prefix}changes`
    const heard = (from: string, message: string): void => {
      if (from !== channel) return
      const [name = '', node = '', epoch = ''] = message.split(' ')
      listener.changed(name, node, Number(epoch))
    }
    const ready = (): void => listener.reconnected()
    this.#changes.on('message', heard)
    await this.#changes.subscribe(channel)
    this.#changes.on('ready', ready)
    return () => {
      this.#changes.off('message', heard)
      this.#changes.off('ready', ready)
    }
  }

  async beat(
    { id, url }: Node,
    { nodeMs, leaseMs, earlyMs }: DirectoryTimes,
    highestEpoch: number,
  ): Promise<Beat> {
    // A listening connection sends nothing: without a ping, it would not notice that its network is gone.
    if (this.#changes.status === 'ready') this.#changes.ping().catch(() => {})
    const [known, last] = await this.#commands.ltBeat(
      this.#prefix,
      id,
      url,
      nodeMs,
      leaseMs,
      earlyMs,
      highestEpoch,
    )
    return { isKnown: known === 1, highestEpoch: last }
  }

  async claim(
    node: string,
    { name, shown, next, isShared, isTls = false }: NameWish,
    { holdMs, earlyMs }: DirectoryTimes,
  ): Promise<NameOutcome> {
    const [epoch, proved] = await this.#commands.ltClaim(
      this.#prefix,
      node,
      name,
      shown,
      next,
      flag(isShared),
      flag(isTls),
      holdMs,
      earlyMs,
    )
    if (epoch === 0) return { kind: 'taken' }
    return epoch < 0 ? { kind: 'early', waitMs: -epoch } : { kind: 'granted', epoch, isProved: proved === 1 }
  }

  async restore(
    node: string,
    holds: readonly Hold[],
    { holdMs }: DirectoryTimes,
  ): Promise<readonly string[]> {
    const lost: string[] = []
    for (let at = 0; at < holds.length; at += HOLDS_AT_ONCE) {
      const args = holds
        .slice(at, at + HOLDS_AT_ONCE)
        .flatMap(({ name, epoch, proof, isShared, isTls = false }) => [
          name,
          epoch,
          proof,
          flag(isShared),
          flag(isTls),
        ])
      lost.push(...(await this.#commands.ltRestore(this.#prefix, node, holdMs, ...args)))
    }
    return lost
  }

  async release(node: string, name: string, epoch: number, lost?: LostClaim): Promise<void> {
    const claim = lost === undefined ? [] : [lost.proof, lost.isShared ? '1' : '']
    await this.#commands.ltRelease(this.#prefix, node, name, epoch, ...claim)
  }

  async find(name: string): Promise<readonly Place[]> {
    const [tls, ...flat] = await this.#commands.ltFind(this.#prefix, name)
    return nodesOf(flat).map(node => (tls === '1' ? { ...node, isTls: true } : node))
  }

  async ports(): Promise<readonly string[]> {
    const held: string[] = []
    let cursor = '0'
    do {
      const [next, names] = await this.#commands.sscan(`${this.#prefix}ports`, cursor, 'COUNT', HOLDS_AT_ONCE)
      if (names.length > 0) held.push(...(await this.#commands.ltHeld(this.#prefix, ...names)))
      cursor = next
    } while (cursor !== '0')
    // An entry of a set that grows during the scan may appear twice.
    return [...new Set(held)]
  }

  async leave(node: string): Promise<void> {
    await this.#commands.del(`${this.#prefix}node:${node}`)
  }

  async nodes(): Promise<readonly Node[]> {
    return nodesOf(await this.#commands.ltNodes(this.#prefix))
  }

  secret(fresh: string): Promise<string> {
    return this.#commands.ltSecret(this.#prefix, fresh)
  }

  close(): Promise<void> {
    if (!this.#isClosed) for (const one of [this.#commands, this.#changes]) one.disconnect()
    this.#isClosed = true
    return Promise.resolve()
  }
}

/** A pattern for the reply of a replica. Old versions of Redis put it into the error of a script. */
const READONLY = /^READONLY|-READONLY /
const PASSING = /^(?:LOADING|MASTERDOWN|READONLY)|-READONLY /
const LOGIN = /^(?:WRONGPASS|NOAUTH|NOPERM)|-NOPERM |ERR AUTH /
/** A pattern for the errors of a Redis Cluster: scripts read several keys, which are on several nodes there. */
const SHARDS = /^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN) |non local key/
const SHARDS_ADVICE = 'It is a node of a Redis Cluster: give --cluster a single Redis or its Sentinels.'
const LOGIN_ADVICE =
  'Correct the login in the URL of --cluster: it is missing or wrong, or may do too little in Redis.'

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOENT: 'nothing listens there (ENOENT)',
  ENOTFOUND: 'no address is known for this name (ENOTFOUND)',
  EHOSTUNREACH: 'there is no route to it (EHOSTUNREACH)',
  // Also from a web server, depending on whether its response is read first.
  EPIPE: 'it closes the connection, and may not be Redis (EPIPE)',
  ECONNRESET: 'it closes the connection, and may not be Redis (ECONNRESET)',
}

/** Returns the reason in our words, because those of the package concern its options. */
function reasonOf(cause: Error): string {
  const known = 'code' in cause ? REASONS[String(cause.code)] : undefined
  if (known !== undefined) return known
  if (cause.message.startsWith('Unknown RESP type')) return 'what answers there is not Redis'
  // A command, a connection, or the attempts to connect.
  if (/time(?:d ?)?out|max retries|is closed/i.test(cause.message))
    return `it did not answer in ${COMMAND_MS / 1_000} s`
  return cause.message.replace(/\.+$/, '')
}

function labelOf(url: string): string {
  return url.replace(/\/\/.*@/, '//')
}

export type Connection = Redis

/** Opens a connection. Connects at once, and reconnects until it is closed. Throws `OPTION_INVALID` for an invalid URL. */
export async function openRedis(options: RedisDirectoryOptions): Promise<Connection> {
  const connection = connectionOf(options)
  const { Redis } = await load()
  return new Redis(connection)
}

/** Loads an optional package: it is larger than all others together, and few servers are in a cluster. */
async function load(): Promise<Pick<typeof import('ioredis'), 'Redis'>> {
  try {
    return await import('ioredis')
  } catch (cause) {
    const text =
      'A cluster needs the package ioredis, which is not installed beside the server: npm install ioredis.'
    throw optionInvalid(text, { cause })
  }
}

const flag = (isSet: boolean): string => (isSet ? '1' : '')

function nodesOf(flat: readonly string[]): readonly Node[] {
  const nodes: Node[] = []
  for (let at = 0; at < flat.length; at += 2) nodes.push({ id: flat[at] ?? '', url: flat[at + 1] ?? '' })
  return nodes
}

function connectionOf({ url, ca }: RedisDirectoryOptions): RedisOptions {
  const common: RedisOptions = {
    commandTimeout: COMMAND_MS,
    connectTimeout: COMMAND_MS,
    // Then it reconnects: a broken network gives no sign, and a kernel gives up only after a quarter of an hour.
    socketTimeout: COMMAND_MS,
    // A command that cannot be sent now fails now, because a visitor waits for it.
    maxRetriesPerRequest: 0,
    enableOfflineQueue: true,
    autoResubscribe: true,
    // After a failover, the same name may mean the new primary.
    reconnectOnError: ({ message }) => READONLY.test(message),
    retryStrategy: tries => RETRY_MS[Math.min(tries, RETRY_MS.length) - 1] ?? 1_000,
  }
  if (url.startsWith('unix:')) return { ...common, path: url.slice('unix:'.length) }
  if (url.startsWith('sentinel://')) return { ...common, ...sentinelsOf(url) }
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw invalid(url)
  }
  if ((parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') || parsed.hostname === '')
    throw invalid(url)
  const { hostname, port, username, password, pathname } = parsed
  const db = pathname.length > 1 ? Number(pathname.slice(1)) : 0
  if (!Number.isInteger(db) || db < 0) throw invalid(url)
  return {
    ...common,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 6379 : Number(port),
    db,
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    ...(parsed.protocol === 'rediss:' && { tls: ca === undefined ? {} : { ca } }),
  }
}

function sentinelsOf(url: string): RedisOptions {
  const match = /^sentinel:\/\/(?:([^:@]*):([^@]*)@)?([^/]+)\/([\w.-]+)$/.exec(url)
  if (match === null) throw invalid(url)
  const [, username = '', password = '', hosts = '', name = ''] = match
  return {
    sentinels: hosts.split(',').map(one => {
      const [, host = '', port = '26379'] = /^(.*?)(?::(\d+))?$/.exec(one) ?? []
      return { host, port: Number(port) }
    }),
    name,
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
  }
}

function invalid(url: string): TunnelError {
  // The URL may contain a password.
  const shown = url.replace(/\/\/.*@/, '//…@')
  return optionInvalid(
    `"${shown}" is no address of a Redis: redis://host:6379, rediss://host, unix:/path or sentinel://host:26379/name.`,
  )
}
