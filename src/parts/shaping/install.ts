// Limits the bandwidth of tunnels: delays the bytes of their requests, and wraps the sockets of raw visitors.

import type { Install } from '../../server/contracts/part.ts'
import { ShapedSocket } from './shaped-socket.ts'
import { ShapedVisit } from './shaped-visit.ts'
import { Shaping, ShapingTimer } from './shaping.ts'

export const installShaping: Install = server => {
  const timer = new ShapingTimer(error => server.failed(error))
  const made = () => new Shaping(server.settings.tunnelRules, timer)
  let shaping = made()
  return {
    name: 'shaping',
    layer(next, tunnel) {
      if (!shaping.isFor(tunnel)) return next
      return request => {
        request.useValve(ends => {
          const shapes = shaping.of(tunnel, request.address)
          return shapes && new ShapedVisit(shapes, ends)
        })
        return next(request)
      }
    },
    wrap(socket, tunnel, address) {
      const shapes = shaping.of(tunnel, address)
      if (shapes === undefined) return undefined
      const shaped = new ShapedSocket(socket, shapes)
      return { socket: shaped, handlerFor: handler => shaped.handlerFor(handler) }
    },
    reloaded() {
      shaping = made()
    },
  }
}
