// A tunnel's guard without a server: asked by requests that are text, as the server parses them.

import type { GuardOptions } from '../../src/guard.ts'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { OwnGuard } from '../../src/own-guard.ts'
import type { Admittance, Guard, Pass, Refusal, Verdict } from '../../src/plugin.ts'
import { type GuardingOptions, guarding } from '../../src/plugins/guarding.ts'

const LIMITS = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }

/** The head of `GET /path` with these lines, for shop.example unless a line says otherwise. */
export function headOf(request: string, lines: readonly string[] = []): RequestHead {
  const host = lines.some(line => /^host:/i.test(line)) ? [] : ['Host: shop.example']
  const bytes = new TextEncoder().encode([`${request} HTTP/1.1`, ...host, ...lines, '', ''].join('\r\n'))
  const head = new RequestHead()
  const end = parseRequestHead(head, bytes, 0, bytes.length, LIMITS)
  if (end !== bytes.length) throw new Error(`the test's own request is refused: ${head.refusal}`)
  return head
}

export interface GuardUnderTest {
  readonly guard: Guard
  readonly key: string
  /** What it says to this request. */
  readonly ask: (request: string, lines?: readonly string[], about?: Partial<Admittance>) => Promise<Verdict>
}

export async function guardOf(
  options: GuardOptions,
  setUp: GuardingOptions = {},
  kind: Admittance['kind'] = 'http',
): Promise<GuardUnderTest> {
  const own = new OwnGuard(options)
  const guard = await guarding(setUp)(JSON.parse(JSON.stringify(await own.define('shop'))), {
    kind,
    name: 'shop',
  })
  return {
    guard,
    key: own.key,
    ask: async (request, lines, about = {}) =>
      guard.admit({
        kind,
        tunnel: 'shop',
        owner: 'of-a-token',
        address: '192.0.2.1',
        isSecure: true,
        ...(kind === 'http' && { head: headOf(request, lines) }),
        ...about,
      }),
  }
}

/** The code of a refusal; `passed` where the visitor may pass. */
export function codeOf(verdict: Verdict): string {
  if (verdict === undefined) return 'passed'
  if ('read' in verdict) return 'reads'
  if (isPass(verdict)) return 'passed'
  return verdict.code ?? String(verdict.status)
}

export function isPass(verdict: Verdict): verdict is Pass {
  return verdict !== undefined && !('read' in verdict) && !('code' in verdict) && !('status' in verdict)
}

/** A refusal, or the test fails. */
export function refusalOf(verdict: Verdict): Refusal {
  if (verdict === undefined || isPass(verdict) || 'read' in verdict)
    throw new Error(`no refusal: ${codeOf(verdict)}`)
  return verdict
}

/** Its header of this name. */
export function headerOf(verdict: Verdict, name: string): string | undefined {
  return refusalOf(verdict).headers?.find(([one]) => one === name)?.[1]
}

/** Sends the form that the guard reads. */
export async function submit(verdict: Verdict, body: string): Promise<Refusal> {
  if (verdict === undefined || !('read' in verdict)) throw new Error(`no form is read: ${codeOf(verdict)}`)
  return verdict.read(new TextEncoder().encode(body))
}

/** `Cookie` for the next request, of all that were set. */
export function cookieOf(answer: Refusal): string {
  const set = (answer.headers ?? []).filter(([name]) => name === 'set-cookie')
  return `Cookie: ${set.map(([, value]) => value.split(';')[0]).join('; ')}`
}
