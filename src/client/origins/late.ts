// An origin whose address is set later. Until then its visitors get 502.

import { TunnelError } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Origin } from './origin.ts'

export class LateOrigin implements Origin {
  #place: Origin | undefined

  get label(): string {
    return this.#place?.label ?? 'an app that is not there yet'
  }

  get url(): string {
    return this.#place?.url ?? 'http://localhost'
  }

  /** Sets the origin of new connections. Open ones are not moved. */
  lead(to: Origin): void {
    this.#place = to
  }

  async connect(handler: SocketHandler): Promise<Socket> {
    if (this.#place === undefined) throw new TunnelError('ORIGIN_REFUSED', 'The app is not there yet.')
    return this.#place.connect(handler)
  }
}
