// Explains an exchange in sentences of our own, without any text of a visitor.

import { ERRORS } from '../../errors.ts'
import type { ExchangeDetail, ExchangeRow } from '../../exchange.ts'
import { formatBytes, formatDuration } from '../terminal/format.ts'

/** The duration in milliseconds above which a response is called slow. */
const SLOW_MS = 1_000

/** Explains an exchange. `others`: similar requests, the newest first. */
export function explained(detail: ExchangeDetail, others: readonly ExchangeRow[]): readonly string[] {
  return [
    outcomeOf(detail),
    ...codeOf(detail),
    ...timesOf(detail),
    ...bodiesOf(detail),
    ...signatureOf(detail),
    ...othersOf(detail, others),
    detail.replayable === true
      ? 'It can be replayed.'
      : `It cannot be replayed (${detail.replayable}): ${ERRORS[detail.replayable].meaning}`,
  ]
}

function outcomeOf({ kind, state, status, isRefused, code, service, response }: ExchangeDetail): string {
  if (kind === 'tcp' || kind === 'tls' || kind === 'udp')
    return `A ${kind.toUpperCase()} connection to ${service}, ${state === 'open' ? 'still open' : 'closed'}.`
  if (isRefused) return `The tunnel server returned ${status}; the app never got the request.`
  if (state === 'open')
    return status === 0
      ? 'The app has not responded yet.'
      : `The app returned ${status} and is still sending.`
  if (response === undefined)
    return `The app at ${service} gave no response${code === undefined ? '' : ` (${code})`}.`
  const cut = state === 'failed' ? ', and the exchange was cut short' : ''
  if (status >= 500) return `The app at ${service} itself returned ${status}, an error of its own${cut}.`
  if (status >= 400) return `The app at ${service} itself refused the request with ${status}${cut}.`
  return `The app at ${service} returned ${status}${cut}.`
}

function codeOf({ code, explanation = '' }: ExchangeDetail): readonly string[] {
  if (code === undefined) return []
  const { action } = ERRORS[code]
  return [`${code}: ${explanation.slice(0, -action.length)}To do: ${action}`]
}

function timesOf({
  times: { waitingMs = 0, appMs, transferMs, totalMs },
}: ExchangeDetail): readonly string[] {
  if (totalMs === undefined) return []
  const parts = [
    ...(waitingMs > 0 ? [`${formatDuration(waitingMs)} waiting at the server`] : []),
    ...(appMs === undefined ? [] : [`${formatDuration(appMs)} until the app started to respond`]),
    ...(transferMs === undefined ? [] : [`${formatDuration(transferMs)} for the response`]),
  ]
  const slow = appMs !== undefined && appMs > SLOW_MS ? ' The app is slow.' : ''
  return [`It took ${formatDuration(totalMs)}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}.${slow}`]
}

function bodiesOf({ request, response, isIncomplete }: ExchangeDetail): readonly string[] {
  const cut = [['request', request?.body] as const, ['response', response?.body] as const].flatMap(
    ([side, body]) =>
      body === undefined || body.keptBytes === body.totalBytes
        ? []
        : [
            `${formatBytes(body.keptBytes)} of ${formatBytes(body.totalBytes)} of the ${side}'s body are stored.`,
          ],
  )
  return isIncomplete
    ? [...cut, 'The capture fell behind, so parts of the exchange are missing here, but not at the app.']
    : cut
}

function signatureOf({ verified }: ExchangeDetail): readonly string[] {
  if (verified === undefined) return []
  const { provider, isValid, reason = 'invalid' } = verified
  return [`Its ${provider} signature is ${isValid ? 'valid' : `not valid: ${reason}`}.`]
}

function othersOf({ id, status }: ExchangeDetail, others: readonly ExchangeRow[]): readonly string[] {
  const replays = others.filter(({ replayOf }) => replayOf === id)
  const differing = others.filter(other => other.status !== status && other.replayOf !== id)
  const list = (rows: readonly ExchangeRow[]) =>
    rows
      .slice(0, 5)
      .map(other => `${other.id} (${other.status || 'no response'})`)
      .join(', ')
  return [
    ...(replays.length > 0 ? [`Replays of it: ${list(replays)}.`] : []),
    ...(differing.length > 0
      ? [`Requests like it that ended otherwise: ${list(differing)}. Compare: diff_requests.`]
      : []),
  ]
}
