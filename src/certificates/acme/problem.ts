// Refusals of an authority (RFC 7807 and 8555, 6.7), as errors of ours.

import { type ErrorCode, TunnelError } from '../../errors.ts'

/** The maximum length of names and reasons in messages. Longer texts are truncated. */
const MAX_DETAIL_CHARS = 1_000
const PREFIX = 'urn:ietf:params:acme:error:'

export interface ProblemDocument {
  readonly type?: unknown
  readonly detail?: unknown
  readonly subproblems?: unknown
}

/** An authority's refusal. `message` contains the reason in its own words. */
export class AcmeProblem extends TunnelError {
  /** The last part of the problem's type: `rateLimited`, `unauthorized` … Empty if it has none. */
  readonly type: string
  /** The status of the HTTP response; 0 for the error of a challenge or an order. */
  readonly status: number
  /** The time in milliseconds after which the authority accepts the next question. */
  readonly retryAfterMs: number | undefined

  /** Makes a problem. `what` is the beginning of the message: what failed. */
  constructor(code: ErrorCode, what: string, problem: ProblemDocument, status = 0, retryAfterMs?: number) {
    const type = typeOf(problem)
    super(code, `${what}: ${wordsOf(problem, status)}`)
    this.type = type
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

export function codeOf(problem: ProblemDocument, status: number): ErrorCode {
  switch (typeOf(problem)) {
    case 'rateLimited':
      return 'ACME_RATE_LIMITED'
    case 'serverInternal':
      return 'ACME_UNREACHABLE'
    default:
      if (status === 429) return 'ACME_RATE_LIMITED'
      return status >= 500 ? 'ACME_UNREACHABLE' : 'ACME_REFUSED'
  }
}

function typeOf({ type }: ProblemDocument): string {
  return typeof type === 'string' ? type.replace(PREFIX, '').slice(0, 100) : ''
}

/** Returns a sentence: the detail, the type, and the problems of single names. */
function wordsOf(problem: ProblemDocument, status: number): string {
  const parts = [textOf(problem.detail) || (status === 0 ? 'no reason given' : `status ${status}`)]
  if (Array.isArray(problem.subproblems)) {
    for (const sub of problem.subproblems.slice(0, 10)) {
      const name = textOf(sub?.identifier?.value)
      parts.push(`${name === '' ? '' : `${name}: `}${textOf(sub?.detail)}`)
    }
  }
  const type = typeOf(problem)
  return `${parts.join('; ').slice(0, MAX_DETAIL_CHARS)}${type === '' ? '' : ` (${type})`}.`
}

/** Returns a text without control characters, for terminals and logs. */
function textOf(value: unknown): string {
  return typeof value === 'string'
    ? value
        .replace(/[\p{Cc}\s]+/gu, ' ')
        .trim()
        .replace(/\.$/, '')
    : ''
}
