// Options that do not exist are refused, in every function that takes options; and words that are near are named.

import { expect, test } from 'bun:test'
import { connectTunnel, guarding, rate, reserve, TunnelClient, TunnelServer } from '../src/index.ts'
import { share } from '../src/integrations/bun.ts'
import localtunnel, { forward } from '../src/integrations/compat.ts'
import { tunnel } from '../src/integrations/test.ts'
import { nearest } from '../src/option-names.ts'

// As a program in JavaScript calls it.
// biome-ignore lint/suspicious/noExplicitAny: the types would refuse it
const untyped = (options: object): any => options

const later = new TunnelClient({ later: true })

test.each<[string, (options: object) => unknown, object, string]>([
  [
    'TunnelClient',
    options => new TunnelClient(untyped(options)),
    { prot: 3000 },
    'TunnelClient has no option "prot". Did you mean port?',
  ],
  [
    'TunnelClient',
    options => new TunnelClient(untyped(options)),
    { port: 1, subdomian: 'a' },
    'Did you mean subdomain?',
  ],
  [
    'TunnelClient',
    options => new TunnelClient(untyped(options)),
    { port: 1, banana: 'a' },
    'TunnelClient has no option "banana".',
  ],
  ...(
    [
      [{ routes: { '/a': { port: 1, prt: 2 } } }, 'routes: /a has no option "prt". Did you mean port?'],
      [{ health: { pth: '/' } }, 'health has no option "pth".'],
      [{ subdomain: 'a', inbox: { path: ['/x'] } }, 'inbox has no option "path". Did you mean paths?'],
      [{ pool: { to: 'all', respons: 'first' } }, 'pool has no option "respons". Did you mean response?'],
    ] as const
  ).map(([more, says]): [string, (options: object) => unknown, object, string] => [
    'within TunnelClient',
    options => new TunnelClient(untyped(options)),
    { port: 1, ...more },
    says,
  ]),
  // The README of localtunnels 0.2.
  [
    'TunnelClient',
    options => new TunnelClient(untyped(options)),
    { host: 'localhost', port: 2, localPort: 3000 },
    'The port of the app is port',
  ],
  ...(
    [
      [{ basicAuth: 'a:b' }, 'guard: { password }'],
      [{ verbose: true }, 'Its events tell what happens'],
    ] as const
  ).map(([more, says]): [string, (options: object) => unknown, object, string] => [
    'TunnelClient',
    options => new TunnelClient(untyped(options)),
    { port: 1, ...more },
    says,
  ]),
  ['connectTunnel', options => connectTunnel(untyped(options)), { prot: 3000 }, 'Did you mean port?'],
  ['reserve', options => reserve(untyped(options)), { subdomian: 'a' }, 'Did you mean subdomain?'],
  [
    'http()',
    options => later.http(untyped(options)),
    { port: 1, subdomian: 'a' },
    'http() has no option "subdomian"',
  ],
  [
    'tcp()',
    options => later.tcp(untyped(options)),
    { port: 1, remoteprt: 2 },
    'tcp() has no option "remoteprt". Did you mean remotePort?',
  ],
  [
    'tls()',
    options => later.tls(untyped(options)),
    { port: 1, remotePort: 2 },
    'tls() has no option "remotePort".',
  ],
  [
    'udp()',
    options => later.udp(untyped(options)),
    { port: 1, idleTimeout: 2 },
    'Did you mean idleTimeoutMs?',
  ],
  ['forward()', options => later.forward(untyped(options)), { prot: 1 }, 'forward() has no option "prot"'],
  [
    'guard',
    options => new TunnelClient(untyped({ port: 1, guard: options })),
    { pasword: 'secret1' },
    'guard has no option "pasword". Did you mean password?',
  ],
  [
    'TunnelServer',
    options => new TunnelServer(untyped(options)),
    { prot: 3000 },
    'TunnelServer has no option "prot". Did you mean port?',
  ],
  [
    'TunnelServer',
    options => new TunnelServer(untyped(options)),
    { domain: 'a.example' },
    'It is domains, a list.',
  ],
  [
    'TunnelServer',
    options => new TunnelServer(untyped({ limits: options })),
    { leaseMS: 1 },
    'Did you mean leaseMs?',
  ],
  [
    'TunnelServer',
    options => new TunnelServer(untyped({ tokens: [options] })),
    { token: 'secret', nmes: ['a'] },
    'Did you mean names?',
  ],
  [
    'the client of limits',
    options => new TunnelClient(untyped({ port: 1, limits: options })),
    { maxStream: 1 },
    'Did you mean maxStreams?',
  ],
  ['guarding()', options => guarding(untyped(options)), { isuers: [] }, 'Did you mean issuers?'],
  [
    'rate()',
    options => rate(untyped({ limit: 1, windowMs: 1, ...options })),
    { windwMs: 1 },
    'Did you mean windowMs?',
  ],
  [
    'localtunnels/test',
    options => tunnel(() => new Response(), untyped(options)),
    { subdomian: 'a' },
    'Did you mean subdomain?',
  ],
  [
    'localtunnels/bun',
    options => share({ url: new URL('http://localhost:1') }, untyped(options)),
    { subdomian: 'a' },
    'Did you mean subdomain?',
  ],
  [
    'localtunnel()',
    options => localtunnel(untyped({ port: 1, ...options })),
    { subdomian: 'a' },
    'localtunnel() has no option "subdomian". Did you mean subdomain?',
  ],
  [
    'forward() of ngrok',
    options => forward(untyped({ addr: 1, ...options })),
    { domian: 'a' },
    'forward() has no option "domian". Did you mean domain?',
  ],
])('%s', async (_, call, options, words) => {
  const outcome = await Promise.try(() => call(options)).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(outcome).toMatchObject({ code: 'OPTION_INVALID', message: expect.stringContaining(words) })
})

test('what is undefined is not there', () => {
  expect(() => new TunnelClient(untyped({ port: 3000, prot: undefined }))).not.toThrow()
})

test.each([
  ['name', ['rate', 'filter'], undefined],
  ['region', ['version'], undefined],
  ['ls', ['tls'], undefined],
  ['tpc', ['tcp', 'udp'], 'tcp'],
  ['sever', ['server'], 'server'],
  ['prot', ['port'], 'port'],
  ['subdomian', ['subdomain'], 'subdomain'],
])('of what is near to %s in %j it names %s', (word, known, near) => {
  expect(nearest(word, known)).toBe(near)
})
