// A decorator of an origin: a request reaches it only when a judge lets it. Other requests pass as they come.

import type { Origin } from '../../client/origin.ts'
import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Socket, SocketHandler } from '../../socket.ts'

/** Decides which requests the app gets. */
export interface Judge {
  /** Whether it decides about requests to this path, which may have a query. */
  matches(target: string): boolean
  /** Whether it reads the body: then a request is kept until it is complete. */
  readonly readsBody: boolean
  /** Bytes of a body that are kept for it; a longer one is answered with 413. */
  readonly maxBodyBytes: number
  /** Why the app does not get the request; `undefined`: it does. */
  refusalOf(head: RequestHead, body: Uint8Array): JudgeRefusal | undefined
}

export interface JudgeRefusal {
  readonly code: ErrorCode
  /** In place of the meaning of the code. */
  readonly detail?: string
}

/** The same origin; the code that judges is loaded with the first connection. */
export function judged(origin: Origin, judge: () => Judge | Promise<Judge>): Origin {
  return {
    label: origin.label,
    url: origin.url,
    async connect(handler: SocketHandler): Promise<Socket> {
      const { connectJudged } = await import('./judged-connection.ts')
      return connectJudged(origin, handler, await judge())
    },
  }
}
