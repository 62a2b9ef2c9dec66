// Certificates by name: asked for during the handshake, from files and from code, and the port that leads to https.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import type { Certificate, Certificates, ChallengeResponses } from '../../src/certificates.ts'
import { TunnelError } from '../../src/errors.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { FileCertificates } from '../../src/tls.ts'
import { makeCertificate } from '../support/certificates.ts'
import { testWith } from '../support/needs.ts'
import { folder } from '../support/programs.ts'
import { rawDial } from '../support/raw.ts'
import { rejection } from '../support/rejection.ts'
import { startServer } from '../support/tunnel.ts'
import { deferred, within } from '../support/within.ts'

let one: Certificate
let two: Certificate
beforeAll(async () => {
  one = await makeCertificate(['one.localhost'])
  two = await makeCertificate(['localhost', '*.localhost'])
})

const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

/** Shakes hands. Resolves with the open connection, rejects with the alert. */
async function shake(port: number, servername: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false, ...options })
  closing.push(() => socket.destroy())
  await within(once(socket, 'secureConnect'), 'the handshake')
  return socket
}

const shown = async (port: number, servername: string): Promise<string> =>
  String((await shake(port, servername)).getPeerCertificate().subject.CN)

const alertOf = async (port: number, servername: string): Promise<string> => {
  const error = await rejection(shake(port, servername))
  return error instanceof Error ? error.message : String(error)
}

const none: Certificates = { find: () => undefined }

describe('certificates by name', () => {
  test('files: the name chooses, the first pair is for all others, and a changed file is shown without a reload', async () => {
    await using dir = await folder('files')
    const write = async (name: string, { cert, key }: Certificate) => {
      await Bun.write(`${dir.path}/${name}.key`, key)
      await Bun.write(`${dir.path}/${name}.crt`, cert)
    }
    await write('one', one)
    await write('two', two)
    const fileOf = (name: string) => ({ cert: `${dir.path}/${name}.crt`, key: `${dir.path}/${name}.key` })
    const certificates = await FileCertificates.open([fileOf('two'), fileOf('one')])
    closing.push(() => certificates.close())
    await using server = await startServer({ certificates })
    expect(server.url).toStartWith('https://')
    expect(await shown(server.port, 'one.localhost')).toBe('one.localhost')
    expect(await shown(server.port, 'three.localhost')).toBe('localhost')
    expect(await shown(server.port, '')).toBe('localhost')
    const { promise, resolve } = deferred<unknown>()
    certificates.on('reloaded', ({ names }) => names.includes('other.localhost') && resolve(names))
    await write('one', await makeCertificate(['other.localhost', 'one.localhost']))
    await certificates.reload()
    await within(promise, 'the change')
    expect(await shown(server.port, 'one.localhost')).toBe('other.localhost')
  })

  test('requests, clients and TLS tunnels on the same port are served', async () => {
    const port = 0
    await using server = await startServer({ port, certificates: { find: () => two } })
    const client = new TunnelClient({ server: `https://localhost:${server.port}`, verifyServer: false })
    await client.http({
      subdomain: 'app',
      fetch: request => new Response(request.headers.get('x-forwarded-proto')),
    })
    const answer = await fetch(`https://127.0.0.1:${server.port}/`, {
      headers: { host: 'app.localhost' },
      tls: { rejectUnauthorized: false },
    })
    expect(await answer.text()).toBe('https')
    await client.disconnect()
  })

  test('a name without one gets the alert unrecognized_name, one whose order failed internal_error', async () => {
    const failed = new TunnelError('ACME_REFUSED')
    await using server = await startServer({
      certificates: { find: name => (name === 'late.localhost' ? Promise.reject(failed) : undefined) },
    })
    expect(await alertOf(server.port, 'nobody.localhost')).toMatch(/unrecognized.name/i)
    expect(await alertOf(server.port, 'late.localhost')).toMatch(/internal.error/i)
  })

  test('the handshake waits for a certificate that is being made; leaving meanwhile harms nobody', async () => {
    const made = deferred<Certificate | undefined>()
    let asked = 0
    const isAsked = deferred<void>()
    await using server = await startServer({
      certificates: {
        find() {
          if (++asked === 2) isAsked.resolve()
          return made.promise
        },
      },
    })
    const impatient = connect({
      port: server.port,
      host: '127.0.0.1',
      servername: 'a.localhost',
      rejectUnauthorized: false,
    })
    impatient.on('error', () => {})
    const patient = shown(server.port, 'b.localhost')
    await within(isAsked.promise, 'both to be asked for')
    impatient.destroy()
    made.resolve(one)
    expect(await patient).toBe('one.localhost')
  })

  test('what throws or rejects without a code is reported, and a certificate that cannot be used', async () => {
    const mixed = { cert: one.cert, key: two.key }
    await using server = await startServer({
      certificates: {
        find(name) {
          if (name === 'a.localhost') return mixed
          if (name === 'b.localhost') return Promise.resolve(mixed)
          if (name === 'c.localhost') return Promise.reject(new Error('a mistake'))
          throw new Error('another one')
        },
      },
    })
    const reported: unknown[] = []
    server.on('error', error => reported.push(error))
    for (const name of ['a', 'b', 'c', 'd'])
      expect(await alertOf(server.port, `${name}.localhost`)).toMatch(/internal.error/i)
    expect(reported.map(error => (error instanceof TunnelError ? error.code : error))).toEqual([
      'TLS_INVALID',
      'TLS_INVALID',
      'INTERNAL',
      'INTERNAL',
    ])
  })

  testWith(['openssl'], 'a session of TLS is resumed, with each certificate and version', async () => {
    await using dir = await folder('sessions')
    const find = (name: string) => (name === 'one.localhost' ? one : two)
    await using server = await startServer({ certificates: { find } })
    const visit = async (version: string, name: string, flag: string) => {
      const at = ['-connect', `127.0.0.1:${server.port}`, '-servername', name, version]
      const child = Bun.spawn(['openssl', 's_client', ...at, '-ign_eof', flag, `${dir.path}/${name}`], {
        stdin: Buffer.from('GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'),
        stderr: 'ignore',
      })
      return /^(New|Reused),/m.exec(await new Response(child.stdout).text())?.[1]
    }
    for (const [version, name] of [
      ['-tls1_2', 'one.localhost'],
      ['-tls1_3', 'two.localhost'],
    ] as const) {
      expect(await visit(version, name, '-sess_out')).toBe('New')
      expect([version, await visit(version, name, '-sess_in')]).toEqual([version, 'Reused'])
    }
  })

  test('a reload brings another source into new handshakes; what cannot change is refused', async () => {
    await using server = await startServer({ certificates: { find: () => one } })
    expect(await shown(server.port, 'any.localhost')).toBe('one.localhost')
    await server.reload({ certificates: { find: () => two } })
    expect(await shown(server.port, 'any.localhost')).toBe('localhost')
    for (const options of [{}, { tls: one }, { certificates: none, httpPort: 0 }])
      expect(await rejection(server.reload(options))).toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('options that do not go together are refused', () => {
    const refused = [
      { tls: one, certificates: none },
      { httpPort: 0 },
      { tls: one, port: 8443, httpPort: 8443 },
      { tlsMinVersion: '1.3' as const },
    ]
    for (const options of refused)
      expect(() => new TunnelServer(options)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    for (const option of ['port', 'httpPort', 'tlsPort'])
      expect(() => new TunnelServer({ tls: one, [option]: 70_000 })).toThrow(
        expect.objectContaining({
          code: 'OPTION_INVALID',
          message: `${option} 70000: a port is a number from 0 to 65535.`,
        }),
      )
  })
})

describe('challenges', () => {
  const challenges: ChallengeResponses = {
    httpAnswer: token => (token === 'known' ? 'known.thumbprint' : undefined),
    tlsCertificate: name => (name === 'one.localhost' ? one : undefined),
  }

  test('TLS-ALPN-01: only a hello that offers acme-tls/1 alone gets the certificate of the check, and is closed', async () => {
    await using server = await startServer({ certificates: { find: () => two }, challenges })
    const check = await shake(server.port, 'one.localhost', { ALPNProtocols: ['acme-tls/1'] })
    expect([check.alpnProtocol, check.getPeerCertificate().subject.CN]).toEqual([
      'acme-tls/1',
      'one.localhost',
    ])
    check.resume()
    await within(once(check, 'close'), 'its end')
    const visitor = await shake(server.port, 'one.localhost', { ALPNProtocols: ['http/1.1', 'acme-tls/1'] })
    expect(visitor.getPeerCertificate().subject.CN).toBe('localhost')
    const stranger = shake(server.port, 'two.localhost', { ALPNProtocols: ['acme-tls/1'] })
    expect(String(await rejection(stranger))).toMatch(/unrecognized.name/i)
  })

  test('HTTP-01: answered on httpPort for any host; all else is sent to https, where the app has its own paths', async () => {
    await using server = await startServer({ tls: two, httpPort: 0, challenges })
    const ask = async (target: string, host: string, method = 'GET', more = '') => {
      const visitor = await rawDial(server.httpPort ?? 0)
      await visitor.send(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`)
      const text = await visitor.until('\r\n\r\n')
      visitor.socket.terminate()
      return text
    }
    const path = '/.well-known/acme-challenge'
    expect(await ask(`${path}/known`, 'any.example')).toStartWith('HTTP/1.1 200')
    const { port } = server
    expect(await ask(`${path}/other`, 'app.localhost')).toContain(
      `Location: https://app.localhost:${port}${path}/other\r\n`,
    )
    expect(await ask('/a?b=%20', 'app.localhost:80')).toContain(
      `Location: https://app.localhost:${port}/a?b=%20\r\n`,
    )
    expect(await ask('/', 'localhost', 'POST', 'Content-Length: 5\r\n')).toStartWith('HTTP/1.1 308')
    expect(await ask('/', 'evil.example')).toStartWith('HTTP/1.1 404')
    expect(await ask('http://evil.example/', 'localhost')).toStartWith('HTTP/1.1 4')
    await server.reload({ tls: two, httpPort: 0, challenges, publicUrl: 'https://localhost' })
    expect(await ask('/', 'app.localhost')).toContain('Location: https://app.localhost/\r\n')
  })
})
