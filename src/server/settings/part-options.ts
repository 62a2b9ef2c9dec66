// Options of parts, as the operator gives them: each part checks its own.

import type { Directory, DirectoryTimes } from '../../directory.ts'
import type { InboxStore } from '../../inbox.ts'
import type { AuditLog, OperationsStore } from '../../operations.ts'
import type { TokenStore } from '../../tokens.ts'

/** The operator's own listener: the API at `/api/v1`, and `/metrics` for Prometheus. docs/monitoring.md describes it. */
export interface AdminOptions {
  /** The port to listen on. Default 9090. `0` takes any free one; see `server.adminUrl`. In use: `PORT_IN_USE`. */
  readonly port?: number
  /** Address to listen on. Default `127.0.0.1`. It speaks plain HTTP: on other addresses put TLS in front. */
  readonly host?: string
  /** The path of a Unix socket to listen on in place of `host` and `port`. Default none. */
  readonly socket?: string
  /**
   * The token of requests, as `Authorization: Bearer …`: 16 to 255 characters of visible ASCII. None of the tokens of clients.
   * Shorter: `OPTION_INVALID`.
   */
  readonly token: string
  /** Keeps traffic and bans. Default none: there is no traffic by the minute, and bans end with the process. */
  readonly store?: OperationsStore
  /**
   * Keeps what was done with the API, registrations of clients and refusals; of these at most 20 a second, and the next line says how many
   * were left out. Default none.
   */
  readonly audit?: AuditLog
  /**
   * The time without a visitor after which the server probes the app of a tunnel, with `HEAD /` and the user agent
   * `localtunnels-probe`, for "last proven" of `/api/v1/tunnels`. Milliseconds. Default 60,000. `0`: never.
   */
  readonly probeMs?: number
  /** Tokens that the API may make, list and revoke. Default none: it has no tokens. */
  readonly tokens?: TokenStore
  /**
   * The handler of `POST /api/v1/upgrade`, which starts another program in place of this one. Default none: the API refuses it.
   * With it, the other program may listen on the same port.
   */
  readonly upgrade?: AdminUpgrade
  /** Tunnels with metrics of their own. Default 1,000, of some 5 KB each. If exceeded: those that are gone give way, then `_other`. */
  readonly maxMetricTunnels?: number
}

/** Replaces a server by another program. */
export interface AdminUpgrade {
  /** Whether this program replaces another one, which still has the port. */
  readonly isSuccessor: boolean
  /** Resolves with the number of the process that serves from now on. Rejects with `UPGRADE_FAILED`. */
  run(): Promise<number>
}

export interface InboxOptions {
  /** The store of webhooks: `await openInbox('inbox.db')`. The caller closes it after `server.stop()`. */
  readonly store: InboxStore
  /**
   * Webhooks of one name, of which one address has no more than it leaves free: half. An IPv6 address counts by its first 64 bits; the
   * loopback, where a proxy may be, is not counted. Default 10,000. If exceeded: the sender gets 503 `INBOX_FULL`, and tries again as it does by itself.
   */
  readonly maxRequests?: number
  /** Bytes of heads and bodies of one name, shared as `maxRequests`. Default 50 MiB; if exceeded: 503. */
  readonly maxBytes?: number
  /**
   * The number of bytes for all names. Default 1 GiB, of which one token, and one address, has no more than it leaves free: at
   * most half. If exceeded: 503.
   */
  readonly maxAllBytes?: number
  /** The maximum length of a body, in bytes. Default 1 MiB, at most 64 MiB; if exceeded: 413 `BODY_TOO_LARGE`. */
  readonly maxBodyBytes?: number
  /**
   * Bytes of bodies in memory that are being read or written. Default 64 MiB, or five times `maxBodyBytes`: one address has
   * at most a fifth of them, one token half. If exceeded: 503 `INBOX_FULL`. A body whose next bytes take longer than `headTimeoutMs`: 408 `REQUEST_TIMEOUT`.
   */
  readonly maxUnwrittenBytes?: number
  /**
   * The maximum age, in milliseconds. Default 3 days, as long as providers try again. Older webhooks are dropped, and a name
   * whose client was away for this long has no inbox any more.
   */
  readonly maxAgeMs?: number
  /** Responses of the app that ask for another try (408, 425, 429, 5xx), until the webhook is dropped. Default 15: about an hour. */
  readonly maxAttempts?: number
}

/** The certificates with which servers of a cluster prove themselves, in addition to the secret, as PEM. */
export interface PeerTls {
  /** The authority that signs certificates only for the servers of the cluster. */
  readonly ca: string
  /** The certificate of this server, for the first of its domains; both sides show it. */
  readonly cert: string
  readonly key: string
}

export interface ClusterOptions {
  /** The directory of names: `openRedisDirectory(url)` of `localtunnels/cluster`. The caller closes it. */
  readonly directory: Directory
  /**
   * The URL at which the other servers reach this one, with scheme and port: `http://10.0.0.2:8080`. Use `https:` where
   * strangers can read along. `unix:/path` for servers of one machine: it listens there as well, for this user alone. Default: the
   * address it listens on, or the first of this machine that is not loopback.
   */
  readonly peerUrl?: string
  /**
   * The mutual TLS between servers, on the port of `peerUrl`, which is `https:` and has a port of its own: a server without
   * such a certificate is refused. Default: none; the servers know each other by the secret alone.
   */
  readonly peerTls?: PeerTls
  /**
   * The secret with which the servers prove themselves, at least 32 characters. Default: one is made, and kept in the directory.
   */
  readonly secret?: string
  /**
   * Tokens that are kept, as `tokens` of `admin`: one that is revoked in this store, or gets another secret, opens nothing at all
   * servers from then on, and what others have done so with leaves it. Default: that of `admin`.
   */
  readonly tokens?: TokenStore
  /**
   * A client that registers while the directory cannot be reached: `refuse` it with `CLUSTER_UNREACHABLE`, so that it tries
   * again, or `grant` it the name at this server, which loses it if another server holds it. Default `refuse`.
   */
  readonly whenUnreachable?: 'refuse' | 'grant'
  /**
   * Called when this server, one of several that end together such as workers, has no open requests. Resolves when that is so at
   * all of them. Until then it serves what their visitors ask of its tunnels; at most `drainTimeoutMs`. Default: it leaves alone.
   */
  readonly othersIdle?: () => Promise<void>
  /** The times of the directory, the same at all servers. Default: `CLUSTER_TIMES`. */
  readonly times?: Partial<DirectoryTimes>
}
