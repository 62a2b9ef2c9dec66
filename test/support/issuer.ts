// An issuer of JSON Web Tokens on this machine: its keys change, and it goes away and comes back.

import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'

export interface Issuer extends Disposable {
  readonly url: string
  /** How often its keys were asked for. */
  readonly keyRequests: number
  /** It answers nothing of use. */
  isAway: boolean
  /** Signs with another key from now on, and knows the old ones no more. */
  rotate(): Promise<void>
  /** With these claims besides `iss`, `aud` (tunnel), `sub` (ci) and an `exp` in ten minutes. */
  sign(claims?: JWTPayload, header?: Readonly<Record<string, unknown>>): Promise<string>
}

export const AUDIENCE = 'https://tunnel.example'

export async function startIssuer(): Promise<Issuer> {
  const state = { keyRequests: 0, isAway: false, number: 0 }
  let pair = await generateKeyPair('ES256', { extractable: true })
  const kid = () => `key-${state.number}`
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (state.isAway) return new Response('away', { status: 503 })
      const { origin, pathname } = new URL(request.url)
      if (pathname === '/.well-known/openid-configuration')
        return Response.json({ issuer: origin, jwks_uri: `${origin}/keys` })
      state.keyRequests++
      return Response.json({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: kid(), alg: 'ES256' }] })
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  return {
    url,
    get keyRequests() {
      return state.keyRequests
    },
    get isAway() {
      return state.isAway
    },
    set isAway(isAway) {
      state.isAway = isAway
    },
    async rotate() {
      pair = await generateKeyPair('ES256', { extractable: true })
      state.number++
    },
    sign: (claims = {}, header = {}) =>
      new SignJWT({
        iss: url,
        aud: AUDIENCE,
        sub: 'ci',
        exp: Math.floor(Date.now() / 1_000) + 600,
        ...claims,
      })
        .setProtectedHeader({ alg: 'ES256', kid: kid(), ...header })
        .sign(pair.privateKey),
    [Symbol.dispose]: () => void server.stop(true),
  }
}
