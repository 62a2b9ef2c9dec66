// The headers that tell an app that a webhook waited. Such lines from visitors of a tunnel with an inbox are removed.

import { editHead } from '../../http/edit-head.ts'
import { type RequestHead, readWhole } from '../../http/head.ts'

/** The header with the number of the attempt, from 1. */
export const DELIVERY_HEADER = 'X-Localtunnels-Delivery'
/** The header with the time of arrival, as `2026-01-31T12:00:00.000Z`. */
export const RECEIVED_HEADER = 'X-Localtunnels-Received'
const LOWER = [DELIVERY_HEADER.toLowerCase(), RECEIVED_HEADER.toLowerCase()] as const

export function withoutMarks(head: RequestHead): void {
  const edited = editHead(head, { withoutHeaders: LOWER, withoutCookies: [], adds: [] })
  if (edited !== undefined && !readWhole(head, edited)) throw new Error('the head is not one any more')
}
