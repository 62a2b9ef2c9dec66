// What the inspector shows was sent: digits, order, names that come twice, bytes that are no characters, ends that were cut.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { resolve } from 'node:path'
import { InspectorApi } from '../support/inspector.ts'
import { InspectorPage } from '../support/inspector-page.ts'
import { describeWith } from '../support/needs.ts'

setDefaultTimeout(60_000)

const SENT =
  '{"id":12345678901234567890,"price":1.0,"a":1,"a":2,"10":"x","9":"y","e":1e400,"gpj":"\u202egpj"}'
const ENTRIES = 1_200

describeWith(['chromium'], 'in a browser', () => {
  let own: InspectorPage
  let id = '12345678901234567890'

  beforeAll(async () => {
    own = await InspectorPage.open(answer, { maxBody: 100_000 })
  })
  afterAll(() => own?.[Symbol.asyncDispose]())

  function answer(request: Request): Response {
    const { pathname } = new URL(request.url)
    const type = (value: string) => ({ headers: { 'content-type': value } })
    if (pathname === '/latin') return new Response(LATIN, type('text/plain; charset=iso-8859-1'))
    if (pathname === '/log') return new Response(LOG, type('text/plain'))
    if (pathname === '/list') return new Response(list(ENTRIES), type('application/json'))
    if (pathname === '/cut') return new Response(list(20_000), type('application/json'))
    if (pathname === '/event') return new Response(null, { status: 204 })
    return new Response(`{"id":${id},"n":1}`, type('application/json'))
  }

  const response = () => own.page.locator('#response')
  const request = () => own.page.locator('#request')

  test('JSON is shown from its source text', async () => {
    await own.json('/sent', SENT)
    await own.choose('/sent')
    await request().getByRole('treeitem').nth(8).waitFor()
    const lines = await request()
      .locator('[role=treeitem]')
      .evaluateAll<string[], undefined>(
        all =>
          all.map(one =>
            [...one.children]
              .filter(part => !part.matches('.cp'))
              .map(part => part.textContent)
              .join(''),
          ),
        undefined,
      )
    expect(lines).toEqual([
      '{8}',
      'id: 12345678901234567890as sent',
      'price: 1.0',
      'a: 1',
      'a: 2',
      '10: "x"',
      '9: "y"',
      'e: 1e400as sent',
      'gpj: "\\u202egpj"',
    ])
    await request().getByRole('treeitem', { name: 'id:' }).first().focus()
    await own.page.keyboard.press('c')
    await own.says('Copied $.id')
    expect(await own.page.evaluate<string>('navigator.clipboard.readText()')).toBe('12345678901234567890')
    await own.page.keyboard.press('Shift+C')
    await own.says('Path copied')
    expect(await own.page.evaluate<string>('navigator.clipboard.readText()')).toBe('$.id')
  })

  test('two bodies that differ in one of twenty digits differ in that line: page, API and command', async () => {
    const { page } = own
    await own.visit('/digits')
    id = '12345678901234567891'
    await own.choose('/digits')
    await page.keyboard.press('r')
    await page.locator('.banner', { hasText: 'The response is different.' }).waitFor()
    await page.keyboard.press('d')
    await page.locator('.diff .minus', { hasText: '"id": 12345678901234567890' }).waitFor()
    await page.locator('.diff .plus', { hasText: '"id": 12345678901234567891' }).waitFor()
    expect(await page.locator('.diff .plus mark').last().textContent()).toBe('1')
    const api = new InspectorApi(own.client)
    const [after, before] = await api.rows('?filter=path:/digits')
    const { json } = await api.ask(`diff?a=${before!.id}&b=${after!.id}`)
    expect(json.response.body.parts).toEqual([
      { op: 'same', text: '{\n' },
      { op: 'removed', text: '  "id": 12345678901234567890,\n' },
      { op: 'added', text: '  "id": 12345678901234567891,\n' },
      { op: 'same', text: '  "n": 1\n}\n' },
    ])
    const bin = resolve(import.meta.dir, '../../bin/localtunnels.ts')
    const command = Bun.spawn(
      [process.execPath, bin, 'replay', before!.id, '--diff', '--pid', String(process.pid)],
      { stdout: 'pipe', stderr: 'pipe' },
    )
    const output = (await new Response(command.stdout).text()) + (await new Response(command.stderr).text())
    expect(output).toContain('-   "id": 12345678901234567890,')
    expect(output).toContain('+   "id": 12345678901234567891,')
  })

  test('text is read by its charset, and one byte that is no character makes no bytes of it', async () => {
    await own.visit('/latin')
    await own.choose('/latin')
    await response().getByText('Grüße aus Köln').waitFor()
    await own.visit('/log')
    await own.choose('/log')
    await response().getByText('line 999 is fine').waitFor()
    expect(await response().textContent()).toContain('bad � byte')
    await own.page.getByLabel('Filter', { exact: true }).fill('body:köln')
    await own.row('/latin').waitFor()
    await own.page.getByLabel('Filter', { exact: true }).fill('')
  })

  test('all entries of a long array are reached, searched and copied; a cut one is a tree as far as it goes', async () => {
    const { page } = own
    await own.visit('/list')
    await own.choose('/list')
    const next = response().getByText(/show the next/)
    await next.click()
    await response().getByText('show the next 200 of 200').click()
    await response()
      .getByRole('treeitem', { name: /^1199:/ })
      .waitFor()
    await response().getByLabel('Search the response body').click()
    await response().getByLabel('Text in the body').fill('name-1187')
    const found = response().getByRole('treeitem', { name: '[1187].name:' })
    await found.hover()
    await found.getByRole('button').click()
    await own.says('Copied $[1187].name')
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe('name-1187')
    await own.visit('/cut')
    await own.choose('/cut')
    await response().getByText('100 kB of').waitFor()
    await response().getByRole('tree').waitFor()
    while ((await next.count()) > 0) await next.click()
    await response().getByText('… the rest was not kept').waitFor()
  })

  test('events of webhooks and operations of GraphQL tell rows apart', async () => {
    const { page } = own
    const post = (path: string, body: string, headers: Record<string, string> = {}) =>
      own.visit(path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
    await post('/event?stripe', '{"id":"evt_1","type":"invoice.paid"}', { 'stripe-signature': 't=1,v1=00' })
    await post('/event?github', '{}', { 'x-github-event': 'pull_request' })
    await post('/event?shopify', '{}', { 'x-shopify-topic': 'orders/create' })
    await post('/event?slack', '{"type":"event_callback","event":{"type":"app_mention"}}', {
      'x-slack-signature': 'v0=00',
    })
    await post('/graphql?event', '{"query":"mutation AddHat($n: Int!) { add(n: $n) }"}')
    await own.all()
    await page.getByLabel('Filter', { exact: true }).fill('event')
    for (const [path, event] of [
      ['stripe', 'invoice.paid'],
      ['github', 'pull_request'],
      ['shopify', 'orders/create'],
      ['slack', 'app_mention'],
      ['graphql', 'mutation AddHat'],
    ] as const)
      await own.row(path).locator('.ev-col', { hasText: event }).waitFor()
    await page.getByLabel('Filter', { exact: true }).fill('event:paid')
    await page.locator('.count', { hasText: /^1 of/ }).waitFor()
  })
})

const LATIN = Buffer.from('Grüße aus Köln', 'latin1')
const LOG = Buffer.concat([
  Buffer.from('bad '),
  Buffer.from([0xff]),
  Buffer.from(` byte\n${Array.from({ length: 1_000 }, (_, line) => `line ${line} is fine`).join('\n')}`),
])

function list(count: number): string {
  return `[${Array.from({ length: count }, (_, index) => `{"id":${index},"name":"name-${index}"}`).join(',')}]`
}
