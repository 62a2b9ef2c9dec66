// Access to the inspector. A page of any site can make a browser send requests to a port of this machine, and any
// program here can connect to it. So every request needs the token, there is no cookie, and requests by foreign pages
// are refused before the token is checked.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TunnelError } from '../../errors.ts'
import { stateFolder } from '../../state-folder.ts'

/** Returns the token, 256 bits for each user. It is stored, so that an open page continues when the client starts again. */
export function tokenOf(environment: Readonly<Record<string, string | undefined>>): string {
  const fresh = randomBytes(32).toString('base64url')
  const folder = stateFolder(environment)
  if (folder === undefined) return fresh
  const path = join(folder, 'inspector-token')
  try {
    return readToken(path) ?? writeToken(path, fresh)
  } catch {
    // If another process has just written the file, or it cannot be written, the token lasts as long as this process.
    return readToken(path) ?? fresh
  }
}

/** Reads the token. `undefined` if there is none, or others may have seen it. */
function readToken(path: string): string | undefined {
  try {
    const { mode, uid } = lstatSync(path)
    // Windows has neither mode bits nor user numbers.
    const isPrivate =
      process.getuid === undefined || ((mode & 0o170_077) === 0o100_000 && uid === process.getuid())
    const text = isPrivate ? readFileSync(path, 'utf8').trim() : ''
    return /^[\w-]{43}$/.test(text) ? text : undefined
  } catch {
    return undefined
  }
}

function writeToken(path: string, token: string): string {
  rmSync(path, { force: true })
  writeFileSync(path, `${token}\n`, { mode: 0o600, flag: 'wx' })
  return token
}

/**
 * Returns a proof for `nonce` that only a holder of the token can make; the token's 256 bits cannot be guessed from it. The page
 * asks for the proof before it sends the token, because after the client has ended another user's program may have its port.
 * `origin` is where the request came to, so that such a program cannot pass it on to an inspector at another port.
 */
export function proofOf(token: string, origin: string, nonce: string): string {
  return createHmac('sha256', token).update(`inspector\n${origin}\n${nonce}`).digest('hex')
}

/**
 * Returns why a request is refused. `undefined` if it is accepted. `needsToken`: the request is for the API, rather
 * than for the page or the proof.
 */
export function refusalOf(
  request: Request,
  port: number,
  token: string,
  needsToken: boolean,
): TunnelError | undefined {
  const { headers, method } = request
  const host = headers.get('host') ?? ''
  // Refuses names that an attacker makes resolve to 127.0.0.1 (DNS rebinding).
  if (host !== `127.0.0.1:${port}` && host !== `[::1]:${port}` && host !== `localhost:${port}`)
    return new TunnelError('INSPECT_REFUSED', `The inspector is not at the host "${host.slice(0, 100)}".`)
  const origin = headers.get('origin')
  if (origin !== null && origin !== `http://${host}`)
    return new TunnelError('INSPECT_REFUSED', `Pages of ${origin.slice(0, 100)} may not use the inspector.`)
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none')
    return new TunnelError('INSPECT_REFUSED', 'Pages of other sites may not use the inspector.')
  const isWrite = method === 'POST' || method === 'PUT' || method === 'PATCH'
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  // A form cannot send JSON. Before a browser sends JSON to another origin it asks, and is refused.
  if (isWrite && type !== 'application/json')
    return new TunnelError('INSPECT_REFUSED', 'What is written must be application/json.')
  if (needsToken && !isToken(headers.get('authorization'), token))
    return new TunnelError('INSPECT_TOKEN_REFUSED')
  return undefined
}

function isToken(authorization: string | null, token: string): boolean {
  const given = /^bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1]
  // Digests have one length, so the time reveals neither the length nor the place of a difference.
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return given !== undefined && timingSafeEqual(digest(given), digest(token))
}

export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
