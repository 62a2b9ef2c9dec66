// The integration in real dev servers of Astro, this major version and the one before, on Node: in a browser, at a public host that
// they do not know by themselves.
// Up to 10 s for a test: Astro compiles and builds in two versions.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Running } from '../cli/bin.ts'
import { describeWith } from '../support/needs.ts'
import { changes, isMarked, mark, shows } from '../support/page.ts'
import { freePort } from '../support/ports.ts'
import { Project } from '../support/project.ts'
import { PublicSide } from '../support/public-site.ts'

const FILES = {
  'src/pages/index.astro': `<html><body><h1></h1><script>
    import { said } from '../said.js'
    const show = text => { document.querySelector('h1').textContent = text }
    show(said)
    import.meta.hot?.accept('../said.js', now => show(now.said))
  </script></body></html>`,
  'src/said.js': `export const said = 'first'`,
}
const configured = (options: object) => `import { localtunnels } from 'localtunnels/astro'
export default { integrations: [localtunnels(${JSON.stringify(options)})] }`

let side: PublicSide
beforeAll(async () => {
  side = await PublicSide.start()
})
afterAll(() => side[Symbol.asyncDispose](), 60_000)

for (const version of ['astro-7', 'astro-6'])
  describeWith(['chromium', 'node'], version, () => {
    let project: Project
    let bin = ''
    beforeAll(async () => {
      project = await Project.install(version, ['./astro'])
      const { bin: bins } = await Bun.file(join(project.folder, 'node_modules/astro/package.json')).json()
      bin = join('node_modules/astro', bins.astro)
      await project.write(FILES)
    }, 240_000)
    afterAll(() => project?.[Symbol.asyncDispose](), 60_000)
    const dev = (): Running => project.start([bin, 'dev', '--port', `${freePort()}`])

    test('a page, and what changes in it, by the public URL; the end of the dev server gives the name back', async () => {
      const site = side.site()
      const options = { server: site.dialled, subdomain: site.name, verifyServer: false }
      await project.write({ 'astro.config.mjs': configured(options) })
      await using running = dev()
      await running.printed(new RegExp(`\\[localtunnels\\] ${site.url}`))
      await using browser = await site.visitor()
      await browser.open(site.url)
      await shows(browser, 'h1', 'first')
      await mark(browser)
      await changes(browser, 'h1', 'second', () =>
        project.write({ 'src/said.js': `export const said = 'second'` }),
      )
      expect(await isMarked(browser)).toBe(true)
      await running.end()
      expect(await site.visit()).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    }, 120_000)

    test('a build is as without it; without a server the dev server starts, and says so', async () => {
      await project.write({ 'astro.config.mjs': configured({}) })
      await using build = project.start([bin, 'build'], { TUNNEL_SERVER: 'https://127.0.0.1:1' })
      expect([await build.exited, build.stderr]).toEqual([0, ''])
      const made = await readdir(join(project.folder, 'dist'), { recursive: true, withFileTypes: true })
      const files = made.filter(one => one.isFile()).map(one => join(one.parentPath, one.name))
      expect(files.length).toBeGreaterThan(0)
      for (const file of files) expect(await Bun.file(file).text()).not.toContain('unnel')
      await using running = dev()
      await running.printed(/localtunnels: no tunnel, as there is no server/)
      await running.printed(/Local +http:/)
      await running.end()
    }, 120_000)
  })
