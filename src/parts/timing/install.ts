// `Server-Timing` in responses, as a part of a server: the time until a request was sent to the client, and from then
// to the response.

import type { Install } from '../../server/contracts/part.ts'

export const installTiming: Install = server => ({
  name: 'timing',
  // Has no `lane`, because lanes do not know how long a request took.
  layer(next) {
    if (!server.settings.hasServerTiming) return next
    return request => {
      let sentAt = 0
      request.follow({
        sent() {
          sentAt = performance.now()
        },
      })
      if (request.arrival.from?.keptFor === undefined)
        request.addAnswerLines(() => (sentAt === 0 ? undefined : timingLine(request.startedAt, sentAt)))
      return next(request)
    }
  },
})

function timingLine(startedAt: number, sentAt: number): Uint8Array {
  const [waitMs, appMs] = [sentAt - startedAt, performance.now() - sentAt]
  return Buffer.from(
    `Server-Timing: tunnel-wait;dur=${waitMs.toFixed(1)}, tunnel-app;dur=${appMs.toFixed(1)}\r\n`,
  )
}
