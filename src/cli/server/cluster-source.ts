// The cluster of `localtunnels server`: the Redis of its flags or file, opened once for all reloads.

import type { ClusterConfig } from '../../config/server-config.ts'
import type { RedisDirectory } from '../../directories/redis.ts'
import { optionInvalid } from '../../errors.ts'
import type { ClusterOptions, PeerTls } from '../../server/settings/part-options.ts'
import type { Run } from '../run.ts'
import { pauseUntil } from '../sharing/patience.ts'

const RETRY_MS = 1_000

export class ClusterSource {
  readonly options: ClusterOptions
  readonly #directory: RedisDirectory
  readonly #config: string

  private constructor(directory: RedisDirectory, config: ClusterConfig) {
    const { peerUrl, secret, whenUnreachable } = config
    const peerTls = peerTlsOf(config)
    this.#directory = directory
    this.#config = JSON.stringify(config)
    this.options = {
      directory,
      ...(peerUrl !== undefined && { peerUrl }),
      ...(peerTls !== undefined && { peerTls }),
      ...(secret !== undefined && { secret }),
      ...(whenUnreachable !== undefined && { whenUnreachable }),
    }
  }

  /** Opens the cluster. Throws `OPTION_INVALID`. A Redis that does not respond is an error of the server's start. */
  static async open(config: ClusterConfig): Promise<ClusterSource> {
    const { RedisDirectory } = await import('../../directories/redis.ts')
    const { url, prefix, ca } = config
    const directory = await RedisDirectory.open({
      url,
      ...(prefix !== undefined && { prefix }),
      ...(ca !== undefined && { ca }),
    })
    return new ClusterSource(directory, config)
  }

  /** Throws `OPTION_INVALID` if a reload would change the cluster. */
  check(next: ClusterConfig | undefined): void {
    if (next === undefined || JSON.stringify(next) !== this.#config)
      throw optionInvalid('cluster cannot change while the server runs: start it again for that.')
  }

  /**
   * Resolves once Redis responds, or when the server must stop. Redis may start after the servers, as after a power
   * cut. A refusal, such as a wrong login, is reported at the server's start.
   */
  async reach({ output, stop }: Run): Promise<void> {
    const told = new Set<string>()
    while (!stop.aborted) {
      try {
        // Only a write shows that it is a replica.
        await this.#directory.leave('none')
        return
      } catch (cause) {
        if (this.#directory.isRefused(cause)) return
        const message = `${this.#directory.explain(cause)} The server starts when it responds.`
        // Each reason once: a Redis that starts may have an untrusted certificate at first.
        if (!told.has(message)) output.event({ type: 'error', code: 'CLUSTER_UNREACHABLE', message })
        told.add(message)
        await pauseUntil(stop, RETRY_MS)
      }
    }
  }

  close(): void {
    void this.#directory.close()
  }
}

/** Returns the certificates of peers. Throws `OPTION_INVALID` if a part is missing. */
function peerTlsOf({ peerCa: ca, peerCert: cert, peerKey: key }: ClusterConfig): PeerTls | undefined {
  if (ca === undefined && cert === undefined && key === undefined) return undefined
  if (ca !== undefined && cert !== undefined && key !== undefined) return { ca, cert, key }
  throw optionInvalid('cluster: peer-ca, peer-cert and peer-key belong together.')
}
