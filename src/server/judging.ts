// Bans and guards as a layer: the booking asks them itself.

import type { Booking } from './booking.ts'
import type { Install } from './contracts/part.ts'

export const installJudging: Install = () => ({
  name: 'guards',
  // Every request here is a booking.
  layer: next => request => (request as Booking).judge(next),
  // The desk of lanes asks them itself.
  lane: () => undefined,
})
