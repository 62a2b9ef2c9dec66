// Checks the cluster options, and has the times of a cluster.

import type { DirectoryTimes } from '../../directory.ts'
import { optionInvalid } from '../../errors.ts'
import type { ClusterOptions } from '../../server/settings/part-options.ts'

/** Throws `OPTION_INVALID` for invalid options. `port`: that of the server. */
export function checkCluster({ peerUrl, peerTls, secret }: ClusterOptions, port: number): void {
  if (secret !== undefined && secret.length < 32)
    throw optionInvalid('cluster.secret must have at least 32 characters.')
  const url = peerUrl === undefined ? undefined : URL.parse(peerUrl)
  if (peerTls !== undefined && (url?.protocol !== 'https:' || Number(url.port || 443) === port))
    throw optionInvalid(
      'cluster.peerTls needs a cluster.peerUrl like https://10.0.0.2:8443, whose port is not that of the server.',
    )
  // A unix socket of this machine.
  if (url?.protocol === 'unix:' && url.pathname.startsWith('/')) return
  const isUrl = url !== null && (url === undefined || /^https?:$/.test(url.protocol))
  if (!isUrl || (url !== undefined && url.pathname !== '/'))
    throw optionInvalid(`cluster.peerUrl must be like http://10.0.0.2:8080, not "${peerUrl}".`)
}

/**
 * The times of a cluster. A server sends three heartbeats in `nodeMs`: with two lost it still counts as alive, and a
 * dead one gets no visitors after that time, even if no connection to it failed. `leaseMs` is that of a single
 * server. `earlyMs` is two heartbeats of the slowest one.
 */
export const CLUSTER_TIMES: DirectoryTimes = {
  nodeMs: 6_000,
  leaseMs: 30_000,
  earlyMs: 2_500,
  holdMs: 600_000,
}
