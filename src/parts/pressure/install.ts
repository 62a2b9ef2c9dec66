// The rules for tunnels under load as a part of a server: a layer for tunnels that a rule names.

import type { Install } from '../../server/contracts/part.ts'
import { Pressures } from './pressure.ts'
import { UnderPressure } from './under-pressure.ts'

export const installPressure: Install = server => {
  const { deadlines } = server
  const made = () => new Pressures(server.settings.tunnelRules, deadlines)
  let pressures = made()
  return {
    name: 'pressure',
    layer(next, tunnel) {
      const pressure = pressures.of(tunnel)
      if (pressure === undefined) return next
      return request =>
        request.isAdmitted ? next(request) : new UnderPressure(pressure, request, deadlines).route(next)
    },
    lane({ tunnel }) {
      const { slots, breaker } = pressures.of(tunnel) ?? {}
      if (slots !== undefined || breaker?.isClosed === false) return 'none'
      return (
        breaker && {
          tally: ({ requests, errors }) => breaker.counted(requests, errors),
          exchanged: ({ status }) => breaker.counted(1, status >= 500 ? 1 : 0),
        }
      )
    },
    reloaded() {
      pressures = made()
    },
  }
}
