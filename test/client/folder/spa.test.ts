// A single-page app: where a page is asked for that is not there, the app answers; everything else stays a 404.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { folderHandler } from '../../../src/parts/functions/folder/handler.ts'
import { Site } from '../../support/site.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

let site: Site
beforeAll(async () => {
  site = await Site.of({
    'index.html': 'app',
    'about.txt': 'about',
    'docs/index.html': 'docs',
    'empty/': '',
    '.env': 'secret',
  })
})
afterAll(() => site[Symbol.asyncDispose]())

async function ask(path: string, accept?: string, method = 'GET') {
  const handler = folderHandler(site.folder, true)
  const headers = new Headers(accept === undefined ? [] : [['accept', accept]])
  const answer = await handler(new Request(`http://app.localhost${path}`, { method, headers }))
  const body = await answer.text()
  const isPage = answer.headers.get('content-type') === 'text/html; charset=utf-8' && answer.status === 404
  if (isPage) expect(body).toContain('<h1>There is no such page</h1>')
  return {
    status: answer.status,
    body: isPage ? '(page)' : body,
    vary: answer.headers.get('vary'),
  }
}

const APP = { status: 200, body: 'app', vary: 'accept' }
const NOTHING = { status: 404, body: 'There is no such file.\n', vary: 'accept' }
/** For a browser that goes there. */
const NO_PAGE = { ...NOTHING, body: '(page)' }

test.each([
  ['/users/42', BROWSER, APP],
  ['/users/42/?tab=1', BROWSER, APP],
  ['/users/42', 'TEXT/HTML', APP],
  ['/empty', BROWSER, APP],
  ['/empty/', BROWSER, APP],
  ['/about', BROWSER, APP],
  ['/v1.2/notes', BROWSER, APP],
  ['/users/42', '*/*', NOTHING],
  ['/users/42', 'application/json', NOTHING],
  ['/users/42', undefined, NOTHING],
  ['/logo.png', BROWSER, NO_PAGE],
  ['/about.txt/', BROWSER, NO_PAGE],
  ['/.env', BROWSER, NO_PAGE],
  ['/.git/config', BROWSER, NO_PAGE],
  ['/a%2fb', BROWSER, NO_PAGE],
  ['/a//b', BROWSER, NO_PAGE],
  ['/about.txt', BROWSER, { status: 200, body: 'about', vary: null }],
  ['/docs/', BROWSER, { status: 200, body: 'docs', vary: null }],
] as const)('%s for %s', async (path, accept, answer) => {
  expect<unknown>(await ask(path, accept)).toEqual(answer)
})

test('HEAD is answered as GET is, POST is not', async () => {
  expect(await ask('/users/42', BROWSER, 'HEAD')).toEqual({ ...APP, body: '' })
  expect((await ask('/users/42', BROWSER, 'POST')).status).toBe(405)
})

test('without an index.html there is no app', async () => {
  await rm(join(site.folder, 'index.html'))
  expect(await ask('/users/42', BROWSER)).toEqual(NO_PAGE)
  await site.write({ 'index.html/x.txt': 'a folder of that name' })
  expect(await ask('/users/42', BROWSER)).toEqual(NO_PAGE)
})
