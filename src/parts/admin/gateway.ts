// Joins the admin APIs of all workers: asks the worker that has an object, and adds up what each has a part of.

import { TunnelError } from '../../errors.ts'
import type { AdminUpgrade } from '../../server/settings/part-options.ts'
import type { ServerStats } from '../../server/settings/stats.ts'
import { type AccessHost, AdminAccess } from './access.ts'
import { failure, json, Missing, text } from './answers.ts'
import { admitted } from './api.ts'
import { type ByWorker, mergedMetrics, mergedStats, mergedTunnels } from './merged.ts'
import { addedRecent } from './recent.ts'
import type { ClientRow, RecentRow, TunnelRow } from './rows.ts'
import { viewOf } from './views.ts'

/** A worker process, and the Unix socket of its admin API. */
export interface AdminMember {
  readonly number: number
  readonly socket: string
}

export interface GatewayOptions extends AccessHost {
  readonly members: () => readonly AdminMember[]
  /** The token with which this process calls the workers. */
  readonly memberToken: string
  readonly upgrade: AdminUpgrade
}

/** The time in milliseconds after which a worker that has not responded is left out. */
const MEMBER_TIMEOUT_MS = 5_000
/** The same time for a probe, which waits for an app. */
const PROBE_TIMEOUT_MS = 30_000
/** The number of workers among which client numbers are divided: worker 2 has 66 where it counts 1. */
const NUMBERS = 64

export class AdminGateway {
  readonly #options: GatewayOptions
  readonly #access: AdminAccess

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#access = new AdminAccess(options)
  }

  /** Responds to every request; never throws. */
  readonly fetch = (request: Request, address: string): Promise<Response> =>
    admitted(request, address, this.#access, async ({ pathname, search }, method) => {
      const body = method === 'POST' ? await request.text() : undefined
      return await this.#answer(new Question(method, pathname, search, body))
    })

  async #answer(question: Question): Promise<Response> {
    const { operation, id } = question
    switch (operation) {
      case 'GET /metrics':
        return text(mergedMetrics(await this.#texts(question)), 'text/plain; version=0.0.4; charset=utf-8')
      case 'GET /api/v1/status':
        return json(mergedStats((await this.#all<ServerStats>(question)).map(({ value }) => value)))
      case 'GET /api/v1/recent': {
        const parts = await this.#all<{ readonly recent: RecentRow }>(question)
        return json({ recent: addedRecent(parts.map(({ value }) => value.recent)) })
      }
      case 'GET /api/v1/views/{id}': {
        const { searchParams } = new URL(question.path, 'http://localhost')
        const view = await viewOf(id, searchParams, path => this.#read(path))
        return view === undefined ? failure(new Missing(`There is no view "${id}".`)) : json(view)
      }
      case 'GET /api/v1/tunnels': {
        const parts = await this.#all<{ readonly tunnels: readonly TunnelRow[] }>(question)
        return json({ tunnels: mergedTunnels(parts.flatMap(part => rowsOf(part, part.value.tunnels))) })
      }
      case 'GET /api/v1/tunnels/{id}': {
        const rows = (await this.#all<TunnelRow>(question)).flatMap(part => rowsOf(part, [part.value]))
        const [row] = mergedTunnels(rows)
        return row === undefined ? failure(new Missing(`There is no tunnel "${id}".`)) : json(row)
      }
      case 'GET /api/v1/clients': {
        const parts = await this.#all<{ readonly clients: readonly ClientRow[] }>(question)
        return json({
          clients: parts.flatMap(({ number, value }) =>
            value.clients.map(row =>
              row.server === undefined ? { ...row, number: outerNumber(number, row.number) } : row,
            ),
          ),
        })
      }
      case 'DELETE /api/v1/clients/{id}':
        return this.#closeClient(question)
      case 'DELETE /api/v1/tunnels/{id}':
      case 'POST /api/v1/tunnels/{id}/probe':
        return this.#whereItIs(question)
      case 'POST /api/v1/upgrade':
        return json({ pid: await this.#options.upgrade.run() })
      case 'POST /api/v1/bans':
      case 'DELETE /api/v1/bans/{id}':
      case 'GET /api/v1/traffic': {
        // Each worker first writes its counts to the store, and reads those of the others.
        if (operation.startsWith('GET')) await this.#all(question)
        const answer = await this.#one(question)
        if (!operation.startsWith('GET')) await this.#all(new Question('GET', '/api/v1/bans', '', undefined))
        return answer
      }
      default:
        // Tokens, certificates and the audit log are the same at all workers.
        return this.#one(question)
    }
  }

  /** Returns the result of a path that several requests read. */
  async #read(path: string): Promise<unknown> {
    const { pathname, search } = new URL(`/api/v1${path}`, 'http://localhost')
    const answer = await this.#answer(new Question('GET', pathname, search, undefined))
    if (answer.ok) return answer.json()
    throw unavailable()
  }

  /** Closes a client. Its number contains the worker. */
  async #closeClient(question: Question): Promise<Response> {
    const outer = Number(question.id)
    const member = this.#options.members().find(({ number }) => number === (outer % NUMBERS) + 1)
    const inner = Math.floor(outer / NUMBERS)
    const answer =
      member && (await this.#ask(member, question.about(`/api/v1/clients/${inner}`)).catch(() => undefined))
    if (answer === undefined || answer.status === 404)
      return failure(new Missing(`There is no client ${question.id}.`))
    return answer.ok ? json({ closed: outer }) : answer
  }

  /** Asks all workers. A tunnel is at one of them, unless it is a pool. */
  async #whereItIs(question: Question): Promise<Response> {
    const answers = await this.#answers(question)
    const found = answers.find(({ answer }) => answer.ok) ?? answers[0]
    if (found === undefined) throw unavailable()
    return found.answer
  }

  /** Returns the result of the first worker that responds. */
  async #one(question: Question): Promise<Response> {
    for (const member of this.#options.members()) {
      const answer = await this.#ask(member, question).catch(() => undefined)
      if (answer !== undefined) return answer
    }
    throw unavailable()
  }

  /** Asks all workers, and returns the results of those that have one. Throws `SERVER_STARTING` if no worker responds. */
  async #all<Value>(question: Question): Promise<readonly ByWorker<Value>[]> {
    const answers = await this.#answers(question)
    const good = answers.filter(({ answer }) => answer.ok)
    // Our own workers respond in the form of this version.
    return Promise.all(
      good.map(async ({ number, answer }) => ({ number, value: (await answer.json()) as Value })),
    )
  }

  async #texts(question: Question): Promise<readonly ByWorker<string>[]> {
    const answers = await this.#answers(question)
    return Promise.all(answers.map(async ({ number, answer }) => ({ number, value: await answer.text() })))
  }

  async #answers(
    question: Question,
  ): Promise<readonly { readonly number: number; readonly answer: Response }[]> {
    const asked = this.#options.members().map(async member => {
      const answer = await this.#ask(member, question).catch(() => undefined)
      return answer === undefined ? [] : [{ number: member.number, answer }]
    })
    const answers = (await Promise.all(asked)).flat()
    if (answers.length === 0) throw unavailable()
    return answers
  }

  /** Asks one worker. Rejects if it is gone, or does not respond in time. */
  #ask({ socket }: AdminMember, { method, path, body }: Question): Promise<Response> {
    return fetch(`http://localhost${path}`, {
      unix: socket,
      method,
      signal: AbortSignal.timeout(path.endsWith('/probe') ? PROBE_TIMEOUT_MS : MEMBER_TIMEOUT_MS),
      headers: {
        authorization: `Bearer ${this.#options.memberToken}`,
        ...(body !== undefined && body !== '' && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && body !== '' && { body }),
    })
  }
}

/** A request of the operator, in a form that can be sent several times. */
class Question {
  readonly method: string
  readonly path: string
  readonly body: string | undefined
  /** The name or id as written in the path. Empty for none. */
  readonly id: string
  /** The method and path, with `{id}` in place of a name or id. */
  readonly operation: string

  constructor(method: string, pathname: string, search: string, body: string | undefined) {
    const [, folder = pathname, id = '', rest = ''] =
      /^(\/api\/v1\/(?:tunnels|clients|bans|tokens|views))\/([^/]+)(\/[a-z]+)?$/.exec(pathname) ?? []
    this.method = method
    this.path = `${pathname}${search}`
    this.body = body
    this.id = id
    this.operation = `${method} ${folder}${id === '' ? '' : `/{id}${rest}`}`
  }

  about(path: string): Question {
    return new Question(this.method, path, '', this.body)
  }
}

function rowsOf({ number }: ByWorker<unknown>, rows: readonly TunnelRow[]): readonly TunnelRow[] {
  return rows.map(row => ({ ...row, clients: row.clients.map(client => outerNumber(number, client)) }))
}

function outerNumber(worker: number, client: number): number {
  return client * NUMBERS + worker - 1
}

function unavailable(): TunnelError {
  return new TunnelError('SERVER_STARTING', 'No worker of the server responds to the admin listener.', {
    action: "Try again in a second. The server's log says why its workers do not start.",
  })
}
