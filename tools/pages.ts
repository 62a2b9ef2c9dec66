// Builds the pages of src/ui, each as one file: its script and its style are in it, and nothing else may run there.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'
import type { BunPlugin } from 'bun'
import type { BuiltPage, PageName } from '../src/http/built-page.ts'

const ui = join(resolve(import.meta.dir, '..'), 'src/ui')

const NAMES = ['inspector', 'admin'] as const

/** Rejects when preact is not there: it is one of the packages for developing. */
export async function buildPage(name: PageName): Promise<BuiltPage> {
  const { outputs, success, logs } = await Bun.build({
    entrypoints: [join(ui, name, 'main.tsx')],
    root: ui,
    target: 'browser',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    throw: false,
  })
  if (!success) throw new Error(logs.map(({ message }) => message).join('\n'))
  const textOf = async (ending: string) =>
    (await outputs.find(({ path }) => path.endsWith(ending))?.text())?.trim() ?? ''
  // The end of a script cannot be a part of it.
  const script = (await textOf('.js')).replaceAll('</script', '<\\/script')
  const style = await textOf('.css')
  const mark = `data:image/svg+xml,${encodeURIComponent(readFileSync(join(ui, 'mark.svg'), 'utf8'))}`
  const html = readFileSync(join(ui, name, 'index.html'), 'utf8')
    .replace(/<script .*<\/script>/, () => `<script type="module">${script}</script>`)
    .replace(/<link rel="icon".*>/, () => `<link rel="icon" href="${mark}">\n<style>${style}</style>`)
  return { html, scriptHash: hash(script), styleHash: hash(style) }
}

function hash(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

/** Puts the pages in place of the module that builds them: a package and an executable have no bundler and no sources. */
export async function builtPages(): Promise<BunPlugin> {
  // Before the other build, which waits for its plugins: one within another never ends.
  const built = await Promise.all(NAMES.map(async name => [name, await buildPage(name)] as const))
  const text = JSON.stringify(Object.fromEntries(built))
  // Both have much in common: together they are a sixth smaller than one and the other.
  const packed = brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: text.length } })
  const contents = `import { brotliDecompressSync } from 'node:zlib'
const packed = '${packed.toString('base64')}'
export const builtPage = async name => JSON.parse(brotliDecompressSync(Buffer.from(packed, 'base64')).toString())[name]`
  return {
    name: 'built-pages',
    setup: build =>
      void build.onLoad({ filter: /\/src\/http\/built-page\.ts$/ }, () => ({ contents, loader: 'js' })),
  }
}
