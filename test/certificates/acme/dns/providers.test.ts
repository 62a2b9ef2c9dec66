// DNS providers whose services cannot be reached from tests: the requests they send, and what they make of answers.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { AcmeDns } from '../../../../src/certificates/acme/dns/acme-dns.ts'
import { Cloudflare } from '../../../../src/certificates/acme/dns/cloudflare.ts'
import { ExecHook } from '../../../../src/certificates/acme/dns/exec.ts'
import { nameBytes, readAnswer, u16 } from '../../../../src/certificates/acme/dns/message.ts'
import { Rfc2136 } from '../../../../src/certificates/acme/dns/rfc2136.ts'
import { Route53, signedHeaders } from '../../../../src/certificates/acme/dns/route53.ts'
import { sign, signatureFault } from '../../../../src/certificates/acme/dns/tsig.ts'
import { systemClock } from '../../../../src/certificates/clock.ts'
import { rejection } from '../../../support/rejection.ts'
import { within } from '../../../support/within.ts'

const never = new AbortController().signal
const NAME = '_acme-challenge.tunnel.test'
const record = (value: string) => ({ name: NAME, value })

interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly body: string
}

async function withService(
  answer: (asked: Asked) => Response,
  use: (url: string, asked: readonly Asked[]) => Promise<void>,
): Promise<void> {
  const all: Asked[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const { method, headers } = request
      const asked = { method, path: pathname + search, headers, body: await request.text() }
      all.push(asked)
      return answer(asked)
    },
  })
  try {
    await use(`http://127.0.0.1:${server.port}`, all)
  } finally {
    await server.stop(true)
  }
}

const shapes = (asked: readonly Asked[]) => asked.map(({ method, path }) => `${method} ${path}`)

/** Keeps TXT records as Cloudflare does: each with an id, the same text once only. */
function cloudflare(contents: string[] = []) {
  return ({ method, path, body, headers }: Asked): Response => {
    if (headers.get('authorization') !== 'Bearer token')
      return Response.json(
        { success: false, errors: [{ code: 10000, message: 'Authentication error' }] },
        { status: 403 },
      )
    if (path.startsWith('/zones?'))
      return Response.json({ success: true, result: path.endsWith('=tunnel.test') ? [{ id: 'zone1' }] : [] })
    if (method === 'GET')
      return Response.json({
        success: true,
        result: contents.map((content, index) => ({ id: `r${index}`, content })),
      })
    if (method === 'DELETE') {
      contents.splice(Number(path.at(-1)), 1)
      return Response.json({ success: true, result: {} })
    }
    const { content } = JSON.parse(body)
    if (contents.includes(content))
      return Response.json({ success: false, errors: [{ code: 81058, message: 'exists' }] }, { status: 400 })
    contents.push(content)
    return Response.json({ success: true, result: { id: 'r' } })
  }
}

test('Cloudflare: finds the zone, adds two texts, removes the one that is meant', async () => {
  const contents: string[] = []
  await withService(cloudflare(contents), async (apiUrl, asked) => {
    const provider = new Cloudflare({ token: 'token', apiUrl })
    await provider.add(record('one'), never)
    await provider.add(record('two'), never)
    await provider.add(record('two'), never)
    expect(contents).toEqual(['"one"', '"two"'])
    expect(JSON.parse(asked[1]!.body)).toEqual({ type: 'TXT', name: NAME, content: '"one"', ttl: 60 })
    await provider.remove(record('one'), never)
    expect(contents).toEqual(['"two"'])
    expect(shapes(asked)).toEqual([
      'GET /zones?name=tunnel.test',
      'POST /zones/zone1/dns_records',
      'POST /zones/zone1/dns_records',
      'POST /zones/zone1/dns_records',
      `GET /zones/zone1/dns_records?type=TXT&name=${NAME}&per_page=100`,
      'DELETE /zones/zone1/dns_records/r0',
    ])
  })
})

test('Cloudflare: a refused token and a name without a zone say so', async () => {
  await withService(cloudflare(), async apiUrl => {
    expect(await rejection(new Cloudflare({ token: 'other', apiUrl }).add(record('x'), never))).toMatchObject(
      {
        code: 'ACME_CHALLENGE_FAILED',
        message: expect.stringContaining('Authentication error (10000)'),
      },
    )
    const elsewhere = { name: '_acme-challenge.other.example', value: 'x' }
    expect(await rejection(new Cloudflare({ token: 'token', apiUrl }).add(elsewhere, never))).toMatchObject({
      message: expect.stringContaining('the token sees no zone'),
    })
  })
})

/** Keeps one set of records as Route 53 does: read whole, written whole; in sync at the second look. */
function route53(set: { texts: string[]; ttl: number }) {
  let looks = 0
  return ({ method, path, body }: Asked): Response => {
    const xml = (text: string) =>
      new Response(`<?xml version="1.0"?>${text}`, { headers: { 'content-type': 'text/xml' } })
    if (path.includes('/hostedzonesbyname'))
      return xml(
        `<HostedZones><HostedZone><Id>/hostedzone/Z0</Id><Name>tunnel.test.</Name><Config><PrivateZone>true</PrivateZone></Config></HostedZone>
        <HostedZone><Id>/hostedzone/Z1</Id><Name>tunnel.test.</Name><Config><PrivateZone>false</PrivateZone></Config></HostedZone></HostedZones>`,
      )
    if (path.includes('/change/')) return xml(`<Status>${looks++ % 2 === 0 ? 'PENDING' : 'INSYNC'}</Status>`)
    if (method === 'GET') {
      const values = set.texts.map(text => `<Value>&quot;${text}&quot;</Value>`).join('')
      const listed = `<ResourceRecordSet><Name>${NAME}.</Name><Type>TXT</Type><TTL>${set.ttl}</TTL>${values}</ResourceRecordSet>`
      const next =
        '<ResourceRecordSet><Name>www.tunnel.test.</Name><Type>TXT</Type><Value>&quot;x&quot;</Value></ResourceRecordSet>'
      return xml(set.texts.length > 0 ? listed : next)
    }
    const texts = [...body.matchAll(/<Value>&quot;(.*?)&quot;<\/Value>/g)].map(match => match[1]!)
    if (body.includes('<Action>DELETE</Action>')) {
      const isSame = texts.join() === set.texts.join() && body.includes(`<TTL>${set.ttl}</TTL>`)
      if (!isSame)
        return new Response('<Code>InvalidChangeBatch</Code><Message>not as it is</Message>', { status: 400 })
      set.texts = []
    } else {
      set.texts = texts
      set.ttl = 60
    }
    return xml('<ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status></ChangeInfo>')
  }
}

const credentials = { accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: 'session' }
/** Its timers go off at once. */
const hasty = {
  now: () => Date.now(),
  after: (_: number, task: () => void) => {
    setImmediate(task)
    return () => {}
  },
}

test('Route 53: reads the set, writes it whole, waits until it is in sync, deletes it as it is', async () => {
  const set = { texts: ['of another order'], ttl: 300 }
  await withService(route53(set), async (apiUrl, asked) => {
    const provider = new Route53({ credentials, apiUrl, clock: hasty })
    // At once: the second must not write over the first.
    await Promise.all([provider.add(record('one'), never), provider.add(record('two'), never)])
    expect(set.texts).toEqual(['of another order', 'one', 'two'])
    expect(shapes(asked).slice(0, 5)).toEqual([
      'GET /2013-04-01/hostedzonesbyname?dnsname=tunnel.test&maxitems=10',
      `GET /2013-04-01/hostedzone/Z1/rrset?maxitems=1&name=${NAME}&type=TXT`,
      'POST /2013-04-01/hostedzone/Z1/rrset/',
      'GET /2013-04-01/change/C1',
      'GET /2013-04-01/change/C1',
    ])
    const { headers } = asked[0]!
    expect(headers.get('x-amz-security-token')).toBe('session')
    expect(headers.get('authorization')).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/us-east-1\/route53\/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
    )
    for (const value of ['one', 'two', 'of another order', 'of another order'])
      await provider.remove(record(value), never)
    expect(set.texts).toEqual([])
  })
})

test('Route 53: a set that another program made is deleted with the time to live that it has', async () => {
  const set = { texts: ['one'], ttl: 300 }
  await withService(route53(set), async apiUrl => {
    await new Route53({ credentials, apiUrl, hostedZoneId: 'Z1', clock: hasty }).remove(record('one'), never)
    expect(set.texts).toEqual([])
  })
})

test('Route 53: the reason of a refusal is in the error', async () => {
  const refusal =
    '<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>'
  await withService(
    () => new Response(refusal, { status: 403 }),
    async apiUrl => {
      const provider = new Route53({ credentials, apiUrl, clock: systemClock })
      expect(await rejection(provider.add(record('x'), never))).toMatchObject({
        code: 'ACME_CHALLENGE_FAILED',
        message: expect.stringContaining('not you (AccessDenied)'),
      })
    },
  )
})

test('signatures are those of the test suite that AWS published for version 4', () => {
  const account = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
  const atMs = Date.UTC(2015, 7, 30, 12, 36, 0)
  const signature = (query: string) => {
    const url = new URL(`https://example.amazonaws.com/${query}`)
    const request = { method: 'GET', url, body: '', region: 'us-east-1', service: 'service' }
    return signedHeaders(request, account, atMs).authorization!.split('Signature=')[1]
  }
  // get-vanilla and get-vanilla-query-order-key-case
  expect(signature('')).toBe('5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31')
  expect(signature('?Param2=value2&Param1=value1')).toBe(
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  )
})

test('acme-dns: updates the account that the CNAME leads to, and says what to set when none does', async () => {
  const account = {
    username: 'user',
    password: 'pass',
    subdomain: 'd420c923',
    fulldomain: 'd420c923.auth.test',
  }
  await withService(
    () => Response.json({ txt: 'value' }),
    async (url, asked) => {
      const provider = new AcmeDns({ url, accounts: [account] })
      await provider.add({ name: 'd420c923.auth.test', value: 'value' }, never)
      expect(shapes(asked)).toEqual(['POST /update'])
      expect(JSON.parse(asked[0]!.body)).toEqual({ subdomain: 'd420c923', txt: 'value' })
      expect([asked[0]!.headers.get('x-api-user'), asked[0]!.headers.get('x-api-key')]).toEqual([
        'user',
        'pass',
      ])
      expect(await rejection(provider.add(record('value'), never))).toMatchObject({
        code: 'ACME_CHALLENGE_FAILED',
        message: expect.stringContaining('make it a CNAME record to d420c923.auth.test'),
      })
    },
  )
})

test('a command that fails is reported with what it wrote, one that hangs is killed with all it started', async () => {
  const failing = new ExecHook({ command: ['sh', '-c', 'echo the reason >&2; exit 3'] })
  expect(await rejection(failing.add(record('x'), never))).toMatchObject({
    code: 'ACME_CHALLENGE_FAILED',
    message: expect.stringMatching(/exit code 3: the reason/),
  })
  const missing = new ExecHook({ command: ['/no/such/program'] })
  expect(await rejection(missing.add(record('x'), never))).toMatchObject({ code: 'ACME_CHALLENGE_FAILED' })
  const hanging = new ExecHook({ command: ['sh', '-c', 'sleep 60 & echo $!; wait'], timeoutMs: 200 })
  const words = String(await rejection(hanging.add(record('x'), never)))
  const [, pid] = /it took more than 200 ms: (\d+)/.exec(words) ?? []
  expect(Number(pid)).toBeGreaterThan(1)
  await within(ended(Number(pid)), `process ${pid} to end`)
})

/** The kernel reports an end to the parent alone, so this asks again and again. */
async function ended(pid: number): Promise<void> {
  while (isRunning(pid)) await Bun.sleep(5)
}

function isRunning(pid: number): boolean {
  try {
    // Behind the name, in brackets, comes the state. A zombie was killed, and its parent has not looked yet.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z')
  } catch {
    // There is no such process any more.
    return false
  }
}

test('an update that is confirmed without a signature is not believed', async () => {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, data) {
        const id = Buffer.from(data).readUInt16BE(2)
        // An answer (0x8000) to an update, without fault, without anything else.
        socket.write(Buffer.concat([u16(12), u16(id, 0x8000 | (5 << 11), 0, 0, 0, 0)]))
      },
    },
  })
  const key = { name: 'key', secret: 'AAAA' }
  const provider = new Rfc2136({
    host: '127.0.0.1',
    port: server.port,
    zone: 'tunnel.test',
    key,
    clock: systemClock,
  })
  expect(await rejection(provider.add(record('x'), never))).toMatchObject({
    code: 'ACME_CHALLENGE_FAILED',
    message: expect.stringContaining('cannot be trusted: it is not signed'),
  })
  server.stop(true)
})

test('an answer that is signed for another request, or with another key, is not believed', () => {
  const key = { name: 'key', secret: Buffer.from('the secret').toString('base64') }
  const nowMs = Date.UTC(2026, 0, 1)
  const message = u16(7, 0x8000 | (5 << 11), 0, 0, 0, 0)
  // Signed as a request is: without the signature of what it answers.
  const { bytes } = sign(message, key, nowMs)
  expect(signatureFault(bytes, key, Buffer.alloc(32), nowMs)).toBe('its signature is wrong')
  expect(signatureFault(bytes, { ...key, name: 'other' }, Buffer.alloc(32), nowMs)).toBe(
    'it is signed with another key',
  )
  expect(signatureFault(message, key, Buffer.alloc(32), nowMs)).toBe('it is not signed')
})

test('DNS answers that end early, or whose names point in circles, are errors', () => {
  const header = (questions: number, answers: number) => u16(1, 0x8000, questions, answers, 0, 0)
  const pointer = Buffer.of(0xc0, 12)
  for (const bytes of [
    Buffer.alloc(3),
    header(1, 0),
    Buffer.concat([header(1, 0), pointer]),
    Buffer.concat([header(1, 0), Buffer.of(0xc0)]),
    Buffer.concat([header(1, 0), Buffer.of(70), Buffer.alloc(80, 97)]),
    Buffer.concat([header(0, 1), nameBytes('a.test'), u16(16, 1, 0, 0, 9)]),
    Buffer.concat([header(0, 9), nameBytes('a.test')]),
  ]) {
    expect(() => readAnswer(bytes)).toThrow()
  }
})
