// Reports of one connection, told apart from those of another that goes on beside it: each server counts from 1.

import type { ConnectionEvents } from './connection.ts'

/** More than a connection has. */
export const NUMBERS_OF_A_CONNECTION: number = 2 ** 32

/** The events with `base` added to the ids of requests and visitors. */
export function numberedFrom(base: number, events: ConnectionEvents): ConnectionEvents {
  if (base === 0) return events
  return {
    ...events,
    request: report => events.request({ ...report, id: base + report.id }),
    switched: id => events.switched(base + id),
    response: report => events.response({ ...report, id: base + report.id }),
    visitorConnected: report => events.visitorConnected({ ...report, id: base + report.id }),
    visitorDisconnected: report => events.visitorDisconnected({ ...report, id: base + report.id }),
  }
}
