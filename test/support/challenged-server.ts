// A server that answers an authority's checks and nothing else: HTTP on one port, TLS on another.

import { createSecureContext, createServer, type Server } from 'node:tls'
import {
  type ChallengeResponses,
  HTTP_CHALLENGE_PATH,
  TLS_CHALLENGE_PROTOCOL,
} from '../../src/certificates.ts'
import { deferred } from './within.ts'

export interface ChallengedServer extends AsyncDisposable {
  readonly httpPort: number
  readonly tlsPort: number
  /** Paths that were asked for over HTTP. */
  readonly asked: readonly string[]
}

export async function startChallengedServer(answers: ChallengeResponses): Promise<ChallengedServer> {
  const asked: string[] = []
  const http = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      asked.push(pathname)
      const answer = answers.httpAnswer(pathname.slice(HTTP_CHALLENGE_PATH.length))
      return new Response(answer ?? 'none', { status: answer === undefined ? 404 : 200 })
    },
  })
  const tls = createServer({
    ALPNProtocols: [TLS_CHALLENGE_PROTOCOL],
    SNICallback(name, done) {
      const certificate = answers.tlsCertificate(name)
      if (certificate === undefined) done(new Error('no check is pending'))
      else done(null, createSecureContext(certificate))
    },
  })
  tls.on('secureConnection', socket => socket.on('error', () => {}).end())
  const tlsPort = await listen(tls)
  return {
    // A TCP port by construction.
    httpPort: http.port!,
    tlsPort,
    asked,
    async [Symbol.asyncDispose]() {
      await http.stop(true)
      const closed = deferred()
      tls.close(() => closed.resolve())
      await closed.promise
    },
  }
}

async function listen(server: Server): Promise<number> {
  const listening = deferred()
  server.listen(0, '127.0.0.1', () => listening.resolve())
  await listening.promise
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
