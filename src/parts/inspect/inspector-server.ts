// The page and API of an inspector on the loopback addresses, and the file by which commands find them.

import { TunnelError } from '../../errors.ts'
import { HandlerConnection } from '../../handler/connection.ts'
import { type LocalListening, listenLocally } from '../../sockets/loopback.ts'
import { tokenOf } from './access.ts'
import { InspectApi } from './api.ts'
import { announce } from './discovery.ts'
import type { Inspector, InspectorServer } from './inspector.ts'

/** The limits of heads of API requests, which contain a filter and a token. */
const HEAD_LIMITS = { maxHeadBytes: 32_768, maxHeaderCount: 100, maxTargetBytes: 8_192 }

/** The number of ports tried after the first. If all are in use, any free one is taken. */
const MAX_NEXT_PORTS = 20

/** Opens the page and API. Rejects with `PORT_IN_USE` if only one port was allowed. */
export async function openInspector(
  inspector: Inspector,
  port: number | { readonly first: number },
): Promise<InspectorServer> {
  const token = tokenOf(process.env)
  let listening: LocalListening | undefined
  const api = new InspectApi(inspector, token, () => listening?.port ?? 0)
  const listen = (on: number) =>
    listenLocally(on, socket => {
      const options = { scheme: 'http', limits: HEAD_LIMITS } as const
      const connection = new HandlerConnection(api.fetch, socket, options)
      return {
        received: bytes => connection.received(bytes),
        drained: () => connection.drained(),
        ended: () => connection.ended(),
        closed: () => connection.aborted(),
      }
    })
  try {
    if (typeof port === 'number') listening = await listen(port)
    else
      for (let on = port.first; listening === undefined; on++)
        listening = await listen(on < port.first + MAX_NEXT_PORTS ? on : 0).catch(error => {
          if (on < port.first + MAX_NEXT_PORTS) return undefined
          throw error
        })
  } catch (cause) {
    const detail = `The inspector cannot listen on 127.0.0.1:${typeof port === 'number' ? port : port.first}.`
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
