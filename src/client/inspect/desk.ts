// Page and API of an inspector, on the loopback addresses, and the file by which commands find them.

import { TunnelError } from '../../errors.ts'
import { HandlerConnection } from '../../http/handler.ts'
import { type LocalListening, listenLocally } from '../../sockets/loopback.ts'
import { newToken } from './access.ts'
import { InspectApi } from './api.ts'
import { announce } from './discovery.ts'
import type { Desk, Inspector } from './inspector.ts'

/** Request heads of the API: a filter and a token. */
const HEAD_LIMITS = { maxHeadBytes: 32_768, maxHeaderCount: 100, maxTargetBytes: 8_192 }

/** Rejects with `PORT_IN_USE`. */
export async function openDesk(inspector: Inspector, port: number): Promise<Desk> {
  const token = newToken()
  let listening: LocalListening | undefined
  const api = new InspectApi(inspector, token, () => listening?.port ?? 0)
  try {
    listening = await listenLocally(port, socket => {
      const options = { scheme: 'http', limits: HEAD_LIMITS } as const
      const connection = new HandlerConnection(api.fetch, socket, options)
      return {
        received: bytes => connection.received(bytes),
        drained: () => connection.drained(),
        ended: () => connection.ended(),
        closed: () => connection.aborted(),
      }
    })
  } catch (cause) {
    const detail = `The inspector cannot listen on 127.0.0.1:${port}.`
    throw new TunnelError('PORT_IN_USE', detail, { cause })
  }
  const own = listening
  const url = `http://127.0.0.1:${own.port}`
  const remove = announce({ url, token }, process.env)
  return {
    url,
    token,
    close() {
      remove?.()
      own.close()
    },
  }
}
