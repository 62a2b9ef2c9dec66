// Asks the guards of the server and of a tunnel, in this order, and combines their verdicts. A guard is foreign code:
// its errors affect only the visitor that it was asked about.

import { copyOf } from '../../bytes.ts'
import { deferred } from '../../deferred.ts'
import { TunnelError } from '../../errors.ts'
import { dashedName, editHead, headerLine } from '../../http/edit-head.ts'
import { type RequestHead, readWhole } from '../../http/head.ts'
import type {
  Admittance,
  Allotment,
  Guard,
  GuardedTunnel,
  GuardMaker,
  HeaderLine,
  Pass,
  Reading,
  Refusal,
  UsedMarks,
  Verdict,
} from '../../plugin.ts'
import type { Asking, Guarding, Judgement, OwnGuard } from '../../server/contracts/guarding.ts'
import type { Faults } from '../../server/contracts/part.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import type { ClusterOptions } from '../../server/settings/part-options.ts'
import { pluginsFor } from '../../server/settings/plugins-for.ts'
import { isRefusing } from '../../server/tunnels/no-guards.ts'

export interface GuardSettings {
  readonly guards: readonly Guard[]
  /** Makes the guards that clients ask for. `undefined` if clients cannot have any. */
  readonly guarding: GuardMaker | undefined
  readonly limits: Pick<Bounds, 'guardTimeoutMs'>
  /** The cluster options. Set if the server shares its tunnels with other servers or workers. */
  readonly cluster: ClusterOptions | undefined
}

const MAKER = { name: 'guarding' }
const VERDICTS = {}

const PASSED: Judgement = { kind: 'pass', passes: [] }
const FAILED: Judgement = { kind: 'refusal', refusal: { code: 'PLUGIN_FAILED' } }

export class Guards implements Guarding {
  /** The used links and ended sessions of all servers. `undefined` if there are no others. */
  marks: UsedMarks | undefined
  asksCertificates = false
  readonly #settings: () => GuardSettings
  readonly #faults: Faults

  constructor(settings: () => GuardSettings, faults: Faults) {
    this.#settings = settings
    this.#faults = faults
  }

  isAsked(own: OwnGuard | undefined, tunnel: string): boolean {
    return own !== undefined || pluginsFor(this.#settings().guards, tunnel).length > 0
  }

  /** Returns the first guard that asks visitors of this tunnel for certificates. `undefined` if none does. */
  askingFor(own: OwnGuard | undefined, tunnel: string): Asking | undefined {
    const all = [...pluginsFor(this.#settings().guards, tunnel), ...(own === undefined ? [] : [own.guard])]
    return all.find((guard): guard is Guard & Asking => guard.clientCa !== undefined)
  }

  /** Asks all guards. Never throws or rejects. Returns a promise only if a guard did. */
  judge(own: OwnGuard | undefined, visitor: Admittance, tokenRate?: Guard): Judgement | Promise<Judgement> {
    return this.#ask(this.#all(own, visitor, tokenRate), 0, visitor, [])
  }

  /** Lists all guards in order. `tokenRate`: the limits of the token. */
  #all(own: OwnGuard | undefined, { tunnel }: Admittance, tokenRate: Guard | undefined): readonly Guard[] {
    const all = pluginsFor(this.#settings().guards, tunnel)
    if (own === undefined && tokenRate === undefined) return all
    return [
      ...all,
      ...(tokenRate === undefined ? [] : [tokenRate]),
      ...(own === undefined ? [] : [own.guard]),
    ]
  }

  /**
   * Returns the allotments from which requests of a connection take without asking the guards. `undefined` if each
   * request must be asked about.
   */
  allot(own: OwnGuard | undefined, visitor: Admittance, tokenRate?: Guard): readonly Allotment[] | undefined {
    const allotments: Allotment[] = []
    for (const guard of this.#all(own, visitor, tokenRate))
      try {
        const allotted = guard.allot?.(visitor)
        if (allotted === undefined) return undefined
        if (allotted !== 'all') allotments.push(allotted)
      } catch (cause) {
        this.#report(guard, cause)
        return undefined
      }
    return allotments
  }

  /** Makes the guard that a client asks for, or returns the reason for a refusal. */
  async make(definition: object, tunnel: GuardedTunnel): Promise<OwnGuard | TunnelError> {
    const { guarding } = this.#settings()
    if (guarding === undefined)
      return new TunnelError(
        'GUARD_UNAVAILABLE',
        'The server has no guards for tunnels, so it does not serve it.',
      )
    try {
      // The remaining time always differs. A guard that differs in nothing else is the same.
      const { leftMs: _leftMs, ...lasting } = { leftMs: 0, ...definition }
      const guarded = { ...tunnel, ...(this.marks !== undefined && { marks: this.marks }) }
      const guard = await guarding(definition, guarded)
      const fault = guard.clientCa === undefined ? undefined : this.#faultOfAsking(tunnel.name)
      return fault ?? { guard, definition: JSON.stringify(lasting), isRefusing: isRefusing(definition) }
    } catch (cause) {
      if (cause instanceof TunnelError) return cause
      this.#report(MAKER, cause)
      return new TunnelError('GUARD_UNAVAILABLE', undefined, { cause })
    }
  }

  /** Returns why visitors cannot be asked for the certificates that the tunnel's own guard wants. */
  #faultOfAsking(tunnel: string): TunnelError | undefined {
    const fault =
      (this.#settings().cluster !== undefined &&
        'Servers of a cluster, and workers, do not ask visitors for certificates.') ||
      (!this.asksCertificates &&
        'The server does not end TLS of visitors itself, so it cannot ask them for certificates.') ||
      (this.askingFor(undefined, tunnel) !== undefined &&
        'Visitors are asked for certificates of the operator.')
    return fault ? new TunnelError('GUARD_UNAVAILABLE', fault) : undefined
  }

  /** Closes a guard that is no longer used. `next` is its replacement, if there is one. */
  close({ guard }: OwnGuard, next?: OwnGuard): void {
    try {
      guard.close?.(next?.guard)
    } catch (cause) {
      this.#report(guard, cause)
    }
  }

  /** Reports a verdict that cannot be applied, or an error of a form's reader. */
  fail(cause: unknown): Refusal {
    this.#faults.report(
      VERDICTS,
      'PLUGIN_FAILED',
      `What a guard decided has failed: ${String(cause)}.`,
      cause,
    )
    return { code: 'PLUGIN_FAILED' }
  }

  #ask(
    guards: readonly Guard[],
    from: number,
    visitor: Admittance,
    passes: readonly Pass[],
  ): Judgement | Promise<Judgement> {
    let all = passes
    for (let index = from; index < guards.length; index++) {
      const guard = guards[index]!
      let verdict: Verdict | Promise<Verdict>
      try {
        verdict = guard.admit(visitor)
      } catch (cause) {
        this.#report(guard, cause)
        return FAILED
      }
      if (verdict === undefined) continue
      if (isPromise(verdict)) return this.#await(guards, index, visitor, all, verdict)
      if (!isPass(verdict)) return this.#judgementOf(verdict)
      all = [...all, verdict]
    }
    return all.length === 0 ? PASSED : { kind: 'pass', passes: all }
  }

  async #await(
    guards: readonly Guard[],
    index: number,
    visitor: Admittance,
    passes: readonly Pass[],
    pending: Promise<Verdict>,
  ): Promise<Judgement> {
    try {
      const verdict = await this.#inTime(pending)
      if (verdict !== undefined && !isPass(verdict)) return this.#judgementOf(verdict)
      return await this.#ask(
        guards,
        index + 1,
        visitor,
        verdict === undefined ? passes : [...passes, verdict],
      )
    } catch (cause) {
      this.#report(guards[index]!, cause)
      return FAILED
    }
  }

  #judgementOf(verdict: Refusal | Reading): Judgement {
    if (!('read' in verdict)) return { kind: 'refusal', refusal: verdict }
    const read = async (body: Uint8Array): Promise<Refusal> => this.#inTime(verdict.read(body))
    return { kind: 'reading', reading: { ...verdict, read } }
  }

  /** Waits for the outcome. Rejects after `guardTimeoutMs`. */
  async #inTime<Outcome>(pending: Outcome | Promise<Outcome>): Promise<Outcome> {
    const { guardTimeoutMs } = this.#settings().limits
    const late = deferred<never>()
    const timer = setTimeout(
      () => late.reject(new Error(`no answer within ${guardTimeoutMs} ms`)),
      guardTimeoutMs,
    )
    try {
      return await Promise.race([pending, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  #report(guard: Pick<Guard, 'name'>, cause: unknown): void {
    this.#faults.report(guard, 'PLUGIN_FAILED', `The guard "${guard.name}" failed: ${String(cause)}.`, cause)
  }
}

function isPromise(verdict: Verdict | Promise<Verdict>): verdict is Promise<Verdict> {
  return verdict !== undefined && 'then' in verdict
}

function isPass(verdict: Exclude<Verdict, undefined>): verdict is Pass {
  return !('read' in verdict) && !('code' in verdict) && !('status' in verdict) && !('body' in verdict)
}

/**
 * Changes the head to the one for the app: it is written and parsed again, so that all later code sees one head.
 * Returns the earlier bytes; `undefined` if nothing changed. Throws for changes that no plugin may make.
 */
export function applyPasses(head: RequestHead, passes: readonly Pass[]): Uint8Array | undefined {
  if (!passes.some(editsHead)) return undefined
  const edited = editHead(head, {
    withoutHeaders: passes.flatMap(({ withoutHeaders = [] }) => withoutHeaders),
    withoutCookies: passes.flatMap(({ withoutCookies = [] }) => withoutCookies),
    adds: passes.flatMap(({ requestHeaders = [] }) => requestHeaders),
  })
  if (edited === undefined) return undefined
  const before = copyOf(head.bytes, head.start, head.end)
  restoreHead(head, edited)
  return before
}

/** Replaces the head by these bytes. Throws if they are not a valid head. */
export function restoreHead(head: RequestHead, bytes: Uint8Array): void {
  if (!readWhole(head, bytes)) throw new Error('the head is not one any more')
}

/**
 * Whether the visitor's Connection names a line that a guard has added. That line would not be forwarded, and the app
 * would take the visitor for another one.
 */
export function hidesAdded({ fields }: RequestHead, passes: readonly Pass[]): boolean {
  if (fields.nominatedCount === 0) return false
  const names = passes.flatMap(({ requestHeaders = [] }) =>
    requestHeaders.map(([name]) => name.toLowerCase()),
  )
  return names.some(name => {
    const line = fields.find(name)
    return line >= 0 && fields.isNominated(line)
  })
}

/** Returns the names of the lines that guards removed from the head or added to it, in the form of `dashedName`. */
export function namesOf(passes: readonly Pass[]): readonly string[] {
  const names = passes.flatMap(({ withoutHeaders = [], requestHeaders = [] }) => [
    ...withoutHeaders,
    ...requestHeaders.map(([name]) => name),
  ])
  return names.map(dashedName)
}

function editsHead({ withoutHeaders, withoutCookies, requestHeaders }: Pass): boolean {
  return withoutHeaders !== undefined || withoutCookies !== undefined || requestHeaders !== undefined
}

/** Returns the header lines for the response, each with its CRLF. `undefined` for none. */
export function answerLinesOf(passes: readonly Pass[]): Uint8Array | undefined {
  const lines: readonly HeaderLine[] = passes.flatMap(({ responseHeaders = [] }) => responseHeaders)
  return lines.length === 0 ? undefined : Buffer.concat(lines.map(([name, value]) => headerLine(name, value)))
}
