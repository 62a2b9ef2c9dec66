// Next, this major version and the one before, on Node: in a browser, at a public host that it does not know by itself.
// A minute: Next compiles and builds in two versions.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from '../support/browser.ts'
import { describeWith } from '../support/needs.ts'
import { changes, compiled, shows, textOf } from '../support/page.ts'
import { freePort } from '../support/ports.ts'
import { Project } from '../support/project.ts'
import { PublicSide } from '../support/public-site.ts'

const NEXT = 'node_modules/next/dist/bin/next'
// What allows another origin alone is refused by both versions.
const CONFIGURED = `import { withLocaltunnels } from 'localtunnels/next'
export default withLocaltunnels({ allowedDevOrigins: ['other.example'] })`
const counter = (title: string) => `'use client'
import { useActionState, useState } from 'react'
import { save } from './actions'
export function Counter() {
  const [count, setCount] = useState(0)
  const [saved, submit] = useActionState(save, 'nothing')
  return <>
    <h1>${title}</h1>
    <button id="count" onClick={() => setCount(count + 1)}>{count}</button>
    <form action={submit}><input name="what" defaultValue="hats" /><button id="save">{saved}</button></form>
  </>
}`
const FILES = {
  'app/layout.js': `export default function Layout({ children }) { return <html><body>{children}</body></html> }`,
  'app/page.js': `import { Counter } from './counter'
export default function Page() { return <Counter /> }`,
  'app/actions.js': `'use server'
export async function save(_, form) { return 'saved ' + form.get('what') }`,
  'app/counter.js': counter('first'),
}

/** Clicks until the page takes it: Next makes it alive only once its WebSocket is open. Returns what the counter shows then. */
async function count(browser: Browser): Promise<string> {
  const drawn = 'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))'
  for (;;) {
    await browser.run(`document.querySelector('#count').click(), ${drawn}`)
    const shown = await textOf(browser, '#count')
    if (shown !== '0') return shown
  }
}

let side: PublicSide
beforeAll(async () => {
  side = await PublicSide.start()
})
afterAll(() => side[Symbol.asyncDispose](), 60_000)

for (const version of ['next-16', 'next-15'])
  describeWith(['chromium', 'node'], version, () => {
    let project: Project
    beforeAll(async () => {
      project = await Project.install(version, ['./next'])
    }, 240_000)
    afterAll(() => project?.[Symbol.asyncDispose](), 60_000)

    test('withLocaltunnels: a page, Fast Refresh that keeps its state, a server action', async () => {
      await project.write({ ...FILES, 'next.config.mjs': CONFIGURED })
      const site = side.site()
      const port = freePort()
      const own = ['--server', site.dialled, '--insecure', '--subdomain', site.name]
      await using running = project.share(['run', ...own, '--', 'node', NEXT, 'dev', '--port', `${port}`])
      await running.printed(new RegExp(`${site.url} → localhost:${port}`))
      await compiled(port)
      await using browser = await site.visitor()
      await browser.open(site.url)
      await shows(browser, 'h1', 'first')
      const counted = await count(browser)
      await changes(browser, 'h1', 'second', () => project.write({ 'app/counter.js': counter('second') }))
      expect(await textOf(browser, '#count')).toBe(counted)
      await browser.run(`document.querySelector('#save').click()`)
      await shows(browser, '#save', 'saved hats')
      expect(`${running.stdout}${running.stderr}`).not.toContain('refuses')
      await running.end()
    }, 240_000)

    test('without it the command line says what Next refuses, and what it says helps', async () => {
      // Next 15 refuses once a configuration allows anything.
      const refusing = version === 'next-15' ? `allowedDevOrigins: ['other.example']` : ''
      await project.write({ ...FILES, 'next.config.mjs': `export default { ${refusing} }` })
      const site = side.site()
      const port = freePort()
      await using running = project.start([NEXT, 'dev', '--port', `${port}`])
      await compiled(port)
      const own = ['--server', site.dialled, '--insecure', '--subdomain', site.name]
      await using shared = project.share([`${port}`, ...own])
      await shared.printed(/the app responds/)
      await using browser = await site.visitor()
      const openPage = async () => {
        do await browser.open(site.url)
        while ((await textOf(browser, 'h1')) !== 'first')
      }
      await openPage()
      const refusal = new RegExp(`Next\\.js refuses ${site.host}\\. Fix: add (.*) to next\\.config\\.`)
      const fix = await shared.printed(refusal)
      expect(fix).toBe(`allowedDevOrigins: ['*.tunnel.test']`)
      await project.write({ 'next.config.mjs': `export default { ${fix} }` })
      await running.printed(/Found a change in next\.config|Restarting the server/i)
      await compiled(port)
      await openPage()
      await count(browser)
      await running.end()
    }, 240_000)

    test('a build is as without it', async () => {
      await project.write({ ...FILES, 'next.config.mjs': CONFIGURED })
      await using build = project.start([NEXT, 'build'], { PUBLIC_URL: 'https://app.tunnel.test' })
      expect([await build.exited, build.stderr]).toEqual([0, expect.any(String)])
      const made = await readdir(join(project.folder, '.next'), { recursive: true, withFileTypes: true })
      const files = made.filter(
        one =>
          one.isFile() && !one.parentPath.includes('.next/dev') && !one.parentPath.includes('.next/cache'),
      )
      expect(files.map(({ name }) => name)).toContain('required-server-files.json')
      const texts = await Promise.all(files.map(one => Bun.file(join(one.parentPath, one.name)).text()))
      expect(texts.filter(text => text.includes('tunnel.test'))).toEqual([])
    }, 90_000)
  })
