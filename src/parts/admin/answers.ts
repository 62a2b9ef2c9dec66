// Responses of the admin API.

import { ERRORS, TunnelError } from '../../errors.ts'
import { SAFE_HEADERS } from './access.ts'

/** An error for a path whose object does not exist. */
export class Missing extends TunnelError {
  constructor(detail: string) {
    super('ADMIN_INVALID', detail)
  }
}

/** The error for a method that the path does not have. It lists the others. */
export class MethodMissing extends TunnelError {
  readonly allowed: string

  constructor(allowed: readonly string[]) {
    const all = allowed.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    super('ADMIN_INVALID', `There is no such operation; this path has ${all}.`)
    this.allowed = all
  }
}

export function missing(detail: string): never {
  throw new Missing(detail)
}

export function text(body: string, type = 'text/plain; charset=utf-8'): Response {
  return new Response(body, { headers: { ...SAFE_HEADERS, 'content-type': type } })
}

export function json(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { ...SAFE_HEADERS, 'content-type': 'application/json' },
  })
}

export function failure(error: TunnelError): Response {
  // An invalid option is the caller's fault here.
  const status =
    error instanceof Missing
      ? 404
      : error instanceof MethodMissing
        ? 405
        : error.code === 'OPTION_INVALID'
          ? 400
          : ERRORS[error.code].status
  const answer = json({ error: { code: error.code, message: error.message } }, status)
  if (status === 401) answer.headers.set('www-authenticate', 'Bearer realm="localtunnels admin"')
  if (error instanceof MethodMissing) answer.headers.set('allow', error.allowed)
  return answer
}
