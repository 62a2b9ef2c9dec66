// The sessions that an agent can read: those of this user with an inspector, and the one in which the agent shares ports.

import { findInspectors } from '../../parts/inspect/discovery.ts'
import { InspectorSession } from '../captured/inspector-session.ts'
import type { Given } from './tool.ts'

export const SESSION_ARGUMENT = {
  type: 'integer',
  description:
    'Process id of the session, from list_tunnels. Default: that of the ports shared here, or the last started.',
  minimum: 1,
} as const

export interface Sessions {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Whether nothing is masked, as the user chose. */
  readonly reveals: boolean
  /** Returns the inspector's page for the ports shared here. `undefined` if there are none. */
  readonly own: () => string | undefined
}

export function sessionOf({ environment, own }: Sessions, given: Given): InspectorSession {
  const pid = given.number('session')
  const page = own()
  if (page !== undefined && (pid === undefined || pid === process.pid)) return InspectorSession.at(page)
  return InspectorSession.find(environment, pid)
}

/** Lists the sessions, each with its process. */
export function allSessions({
  environment,
  own,
}: Sessions): readonly (readonly [number, InspectorSession])[] {
  const page = own()
  const others = findInspectors(environment).filter(({ pid }) => pid !== process.pid)
  const mine = page === undefined ? [] : [[process.pid, InspectorSession.at(page)] as const]
  return [
    ...mine,
    ...others.map(({ pid, url, token }) => [pid, InspectorSession.at(`${url}/#${token}`)] as const),
  ]
}
