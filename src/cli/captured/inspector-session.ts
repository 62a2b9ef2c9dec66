// The inspector of a session in another terminal, as commands use it.

import { ERRORS, type ErrorCode, TunnelError } from '../../errors.ts'
import type { ApiError, InspectEvent } from '../../exchange.ts'
import { type Found, findInspectors } from '../../parts/inspect/discovery.ts'

type Environment = Readonly<Record<string, string | undefined>>

export class InspectorSession {
  readonly #found: Pick<Found, 'url' | 'token'>

  private constructor(found: Pick<Found, 'url' | 'token'>) {
    this.#found = found
  }

  /** Returns the session whose page has this URL, with the token after `#`. */
  static at(page: string): InspectorSession {
    const { origin, hash } = new URL(page)
    return new InspectorSession({ url: origin, token: hash.slice(1) })
  }

  /** Returns the session of this process, or the last one started. Throws `INSPECTOR_NOT_FOUND`. */
  static find(environment: Environment, pid: number | undefined): InspectorSession {
    const found = findInspectors(environment).find(one => pid === undefined || one.pid === pid)
    if (found !== undefined) return new InspectorSession(found)
    throw new TunnelError(
      'INSPECTOR_NOT_FOUND',
      pid === undefined ? undefined : `No process ${pid} of this user has an inspector.`,
    )
  }

  async ask<Value>(path: string, body?: object, signal?: AbortSignal): Promise<Value> {
    return (await this.#ask(path, body, signal)).json() as Promise<Value> // as the API has it: src/exchange.ts
  }

  async text(path: string, signal?: AbortSignal): Promise<string> {
    return await (await this.#ask(path, undefined, signal)).text()
  }

  async bytes(path: string): Promise<Uint8Array> {
    return new Uint8Array(await (await this.#ask(path)).arrayBuffer())
  }

  /** Calls `heard` for each event until the session ends or `signal` is aborted. */
  async follow(filter: string, signal: AbortSignal, heard: (event: InspectEvent) => void): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    try {
      const { body } = await this.#ask(
        `events?${new URLSearchParams({ filter }).toString()}`,
        undefined,
        signal,
      )
      for await (const bytes of body ?? []) {
        const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) if (line !== '') heard(JSON.parse(line) as InspectEvent)
      }
    } catch (error) {
      // Either the user or the session ended it.
      if (!signal.aborted)
        throw new TunnelError('INSPECTOR_NOT_FOUND', 'The session has ended.', { cause: error })
    }
  }

  async #ask(path: string, body?: object, signal?: AbortSignal): Promise<Response> {
    const { url, token } = this.#found
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    let answer: Response
    try {
      answer = await fetch(`${url}/api/v1/${path}`, {
        headers,
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
        ...(signal && { signal }),
      })
    } catch (cause) {
      if (signal?.aborted === true) throw new TunnelError('CANCELLED', 'The call was cancelled.')
      throw new TunnelError('INSPECTOR_NOT_FOUND', 'The session does not respond.', { cause })
    }
    if (answer.ok) return answer
    const { error } = (await answer.json()) as ApiError
    const code: ErrorCode = error.code in ERRORS ? error.code : 'INTERNAL'
    throw new TunnelError(code, error.message)
  }
}
