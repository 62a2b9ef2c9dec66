// The module in real dev servers of Nuxt, this major version and the one before, on Node: in a browser, at a public host that they
// do not know by themselves.
// A minute: Nuxt compiles and builds in two versions.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Running } from '../cli/bin.ts'
import { describeWith } from '../support/needs.ts'
import { changes, compiled, isMarked, mark, shows } from '../support/page.ts'
import { freePort } from '../support/ports.ts'
import { Project } from '../support/project.ts'
import { PublicSide } from '../support/public-site.ts'

const NUXT = 'node_modules/nuxt/bin/nuxt.mjs'
const page = (title: string) => `<script setup>
const is = ref('drawn')
onMounted(() => { is.value = 'alive' })
</script>
<template><div><h1>${title}</h1><p id="is">{{ is }}</p></div></template>`
const configured = (options: object) =>
  `export default { compatibilityDate: '2026-01-01', modules: [['localtunnels/nuxt', ${JSON.stringify(options)}]] }`

let side: PublicSide
beforeAll(async () => {
  side = await PublicSide.start()
})
afterAll(() => side[Symbol.asyncDispose](), 60_000)

for (const version of ['nuxt-4', 'nuxt-3'])
  describeWith(['chromium', 'node'], version, () => {
    const place = version === 'nuxt-4' ? 'app/app.vue' : 'app.vue'
    let project: Project
    beforeAll(async () => {
      project = await Project.install(version, ['./nuxt'])
      await project.write({ [place]: page('first') })
    }, 240_000)
    afterAll(() => project?.[Symbol.asyncDispose](), 60_000)
    const dev = (port = freePort()): Running => project.start([NUXT, 'dev', '--port', `${port}`])

    test('a page, and what changes in it, by the public URL; the end of the dev server gives the name back', async () => {
      const site = side.site()
      const options = { server: site.dialled, subdomain: site.name, verifyServer: false }
      await project.write({ 'nuxt.config.mjs': configured(options) })
      const port = freePort()
      await using running = dev(port)
      await running.printed(new RegExp(`Tunnel:  ${site.url}`))
      await compiled(port)
      await using browser = await site.visitor()
      await browser.open(site.url)
      await shows(browser, '#is', 'alive')
      await mark(browser)
      await changes(browser, 'h1', 'second', () => project.write({ [place]: page('second') }))
      expect(await isMarked(browser)).toBe(true)
      // A restart within the process: the name stays.
      await project.write({ 'nuxt.config.mjs': `${configured(options)}\n// changed` })
      await running.printed(/nuxt\.config\.mjs updated[\s\S]*Tunnel: {2}(.*)/)
      expect(running.stdout.match(/Tunnel: .*/g)).toEqual([`Tunnel:  ${site.url}`, `Tunnel:  ${site.url}`])
      await running.end()
      expect(await site.visit()).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    }, 120_000)

    test('without the module, localtunnels run is enough', async () => {
      await project.write({ 'nuxt.config.mjs': `export default { compatibilityDate: '2026-01-01' }` })
      const site = side.site()
      const port = freePort()
      const own = ['--server', site.dialled, '--insecure', '--subdomain', site.name]
      const command = [project.node, NUXT, 'dev', '--port', `${port}`]
      await using running = project.share(['run', ...own, '--', ...command])
      await running.printed(new RegExp(`${site.url} → localhost:${port}`))
      await compiled(port)
      await using browser = await site.visitor()
      await browser.open(site.url)
      await shows(browser, '#is', 'alive')
      await mark(browser)
      await changes(browser, 'h1', 'third', () => project.write({ [place]: page('third') }))
      expect(await isMarked(browser)).toBe(true)
      await running.end()
    }, 120_000)

    test('a build is as without it; without a server the dev server starts, and says so', async () => {
      await project.write({ 'nuxt.config.mjs': configured({}) })
      await using build = project.start([NUXT, 'build'], { TUNNEL_SERVER: 'https://127.0.0.1:1' })
      expect([await build.exited, build.stdout + build.stderr]).toEqual([
        0,
        expect.not.stringContaining('unnel'),
      ])
      const made = await readdir(join(project.folder, '.output'), { recursive: true, withFileTypes: true })
      const files = made.filter(one => one.isFile()).map(one => join(one.parentPath, one.name))
      expect(files.length).toBeGreaterThan(0)
      for (const file of files) expect(await Bun.file(file).text()).not.toContain('localtunnels/')
      await using running = dev()
      await running.printed(/localtunnels: no tunnel, as there is no server/)
      await running.printed(/Local: +http:/)
      await running.end()
    }, 120_000)
  })
