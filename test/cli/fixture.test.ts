// A webhook that came through a tunnel becomes a file, and a test delivers it to an app that checks its signature.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Stripe from 'stripe'
import { deliver } from '../../src/integrations/deliver.ts'
import { finish, type Running, start } from './bin.ts'

const BODY = JSON.stringify({ id: 'evt_1', object: 'event', note: 'Grüße 🙂' })
let folder = ''
let env: Readonly<Record<string, string>> = {}
let session: Running
let app: Bun.Server<undefined>
let url: URL

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-fixture-'))
  env = { XDG_RUNTIME_DIR: folder }
  app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('ok') })
  session = start([`127.0.0.1:${app.port}`, '--local', '--inspect'], env)
  url = new URL(await session.printed(/^(http:\/\/\S+)$/m))
  const headers = {
    host: url.host,
    connection: 'close',
    authorization: 'Bearer a-secret',
    'content-type': 'application/json',
    'stripe-signature': 't=1,v1=00',
  }
  const asked = { method: 'POST', body: BODY, headers }
  await (await fetch(`http://127.0.0.1:${url.port}/hooks/stripe?a=1`, asked)).text()
})
afterAll(async () => {
  await session[Symbol.asyncDispose]()
  await app.stop(true)
  await rm(folder, { recursive: true })
})

/** As an app would check it. */
async function checking(request: Request): Promise<Response> {
  const stripe = new Stripe('sk_test_x')
  const text = await request.text()
  try {
    const event = await stripe.webhooks.constructEventAsync(
      text,
      request.headers.get('stripe-signature') ?? '',
      'whsec_x',
    )
    return Response.json({ id: event.id, path: new URL(request.url).pathname, text })
  } catch {
    return new Response('wrong signature', { status: 400 })
  }
}

test('it is saved without secrets and byte for byte, and delivered with a signature of now', async () => {
  const file = join(folder, 'hooks', 'paid.http')
  const { stdout, exitCode } = await finish(['fixture', 'save', 'latest', file], env)
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('POST')])
  const text = await readFile(file, 'utf8')
  expect(text).toStartWith('POST /hooks/stripe?a=1 HTTP/1.1\r\n')
  expect(text).toEndWith(`\r\n\r\n${BODY}`)
  expect(text.toLowerCase()).not.toContain('authorization')
  const answer = await deliver(file, checking, { sign: { stripe: 'whsec_x' } })
  expect(await answer.json()).toEqual({ id: 'evt_1', path: '/hooks/stripe', text: BODY })
  expect((await deliver(file, checking)).status).toBe(400)
  expect((await deliver(file, checking, { sign: { stripe: 'another' } })).status).toBe(400)
  // Edited by hand: line feeds alone, and the body is signed as it is now.
  await writeFile(file, text.replaceAll('\r\n', '\n').replace('evt_1', 'evt_2'))
  const edited = await deliver(file, checking, { sign: { stripe: 'whsec_x' } })
  expect(await edited.json()).toMatchObject({ id: 'evt_2' })
})

test('a file that is there stays, and one of another kind is not written', async () => {
  const file = join(folder, 'mine.http')
  await writeFile(file, 'mine')
  const there = await finish(['fixture', 'save', 'latest', file], env)
  expect(there.stderr).toContain('is there already')
  expect(there.exitCode).not.toBe(0)
  expect(await readFile(file, 'utf8')).toBe('mine')
  expect((await finish(['fixture', 'save', 'latest', join(folder, 'x.txt')], env)).stderr).toContain(
    'must end with .http',
  )
})

test.each([
  ['', 'no empty line'],
  ['GET\r\n\r\n', 'its first line'],
  ['GET / HTTP/1.1\r\nno colon\r\n\r\n', 'is no header'],
])('%j is no request', async (text, what) => {
  const file = join(folder, 'bad.http')
  await writeFile(file, text)
  const failure = await deliver(file, () => new Response()).catch((error: Error) => error.message)
  expect(failure).toContain(what)
})
