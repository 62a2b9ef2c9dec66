// Guards as a part of a server: asked about each visitor of a tunnel that has any. Their changes are applied to the request.

import type { Reading, Refusal } from '../../plugin.ts'
import { type Route, routedLater } from '../../server/contracts/front.ts'
import type { Judgement } from '../../server/contracts/guarding.ts'
import type { Router, TunnelRequest } from '../../server/contracts/layer.ts'
import type { Install } from '../../server/contracts/part.ts'
import { judgeByGuards } from '../../server/routing/judging.ts'
import { Allotments } from './allotments.ts'
import { GuardResult } from './guard-result.ts'
import { Guards } from './guards.ts'

export const installGuards: Install = server => {
  const guards = new Guards(() => server.settings, server.faults)
  const allotments = new Allotments(server, guards)
  server.tunnels.guards = guards
  return {
    name: 'guards',
    layer(next, tunnel) {
      if (!tunnel.isGuarded) return next
      return request => {
        if (request.isAdmitted) return next(request)
        const { address, head, isSecure, arrival } = request
        const judgement = judgeByGuards(server, tunnel, { address, head, isSecure, asked: arrival.asked })
        if (judgement === undefined) return next(request)
        if (!(judgement instanceof Promise)) return judged(guards, judgement, request, next)
        return routedLater(judgement, one => judged(guards, one, request, next))
      }
    },
    lane: asking => allotments.clauseFor(asking),
    harvest: () => allotments.renew(),
  }
}

function judged(guards: Guards, judgement: Judgement, request: TunnelRequest, next: Router): Route {
  const failed = (cause: unknown): Refusal => guards.fail(cause)
  const answered = (answer: Refusal | Reading): Route => request.answer(answer, failed)
  if (judgement.kind !== 'pass')
    return answered(judgement.kind === 'refusal' ? judgement.refusal : judgement.reading)
  const { passes } = judgement
  if (passes.length === 0) return next(request)
  try {
    const result = new GuardResult(request.head, passes)
    request.follow({ left: () => result.undo(), ended: () => result.over() })
    request.middlewares = result.middlewares
    if (result.isHidden) return answered({ code: 'BAD_REQUEST' })
    result.keepOpen(() => request.arrival.terminate(), failed)
    if (result.hasTrailers) request.checkBody(bytes => (result.letsBody(bytes) ? undefined : 'BAD_REQUEST'))
    if (result.answerLines !== undefined) request.addAnswerLines(() => result.answerLines)
  } catch (cause) {
    return answered(guards.fail(cause))
  }
  if (request.middlewares.length > 0 && request.head.upgrade !== '')
    return answered({ code: 'GUARD_REFUSED' })
  return next(request)
}
