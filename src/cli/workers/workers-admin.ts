// The admin listener of a server with several workers: this process has the port, and asks the workers.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AdminConfig, ServerConfigOptions } from '../../config/server-config.ts'
import { errorOf } from '../../errors.ts'
import { Networks } from '../../networks.ts'
import { AdminGateway } from '../../parts/admin/gateway.ts'
import { AdminSocket } from '../../parts/admin/listener.ts'
import { boundsOf } from '../../server/settings/bounds.ts'
import { DEFAULT_LIMITS } from '../../server/settings/options.ts'
import type { AdminUpgrade } from '../../server/settings/part-options.ts'
import type { Run } from '../run.ts'
import { adminSocket, keepAccess, MEMBER_TOKEN, newToken, siteUrlOf } from '../server/admin-listener.ts'
import { Refusals } from '../server/refusals.ts'
import { describe } from '../sharing/report.ts'
import type { Workers } from './workers.ts'

export class WorkersAdmin {
  readonly #config: AdminConfig
  readonly #run: Run
  readonly #folder: string
  readonly #memberToken = newToken()
  #socket: AdminSocket | undefined

  /** Prepares the token before the workers start, in `folder`, which only this user can enter. */
  static async prepare(config: AdminConfig, folder: string, run: Run): Promise<WorkersAdmin> {
    const admin = new WorkersAdmin(config, folder, run)
    await writeFile(join(folder, MEMBER_TOKEN), admin.#memberToken, { mode: 0o600 })
    return admin
  }

  private constructor(config: AdminConfig, folder: string, run: Run) {
    this.#config = config
    this.#run = run
    this.#folder = folder
  }

  /** Listens. Throws `PORT_IN_USE` or `OPTION_INVALID`. */
  listen(workers: Pick<Workers, 'serving'>, upgrade: AdminUpgrade, options: ServerConfigOptions): void {
    const { host = '127.0.0.1', port = 9090, token = newToken() } = this.#config
    const { environment, output } = this.#run
    const failed = (error: unknown) => output.event({ type: 'error', ...describe(errorOf(error)) })
    const refusals = new Refusals(output)
    const { fetch } = new AdminGateway({
      members: () =>
        workers
          .serving()
          .map(({ number, pid }) => ({ number, socket: adminSocket(this.#folder, number, pid) })),
      token,
      basePath: options.basePath ?? '',
      memberToken: this.#memberToken,
      upgrade,
      limits: () => boundsOf(DEFAULT_LIMITS),
      refused: (remoteAddress, code) => refusals.refused({ remoteAddress, wire: 'admin', code }),
      failed,
    })
    const trusted = new Networks()
    for (const proxy of options.trustedProxies ?? []) trusted.add(proxy)
    const isTrusted = (address: string) => trusted.has(address)
    this.#socket = new AdminSocket({ host, port, upgrade, isTrusted, fetch, failed })
    const { url = '' } = this.#socket
    keepAccess(environment, { url, token, siteUrl: siteUrlOf(options) })
    const message = `The admin listener is at ${url}. On this machine: localtunnels admin open`
    output.event({ type: 'notice', code: 'ADMIN', message })
  }

  close(): void {
    this.#socket?.close()
  }

  async stop(): Promise<void> {
    await this.#socket?.stop()
  }
}
