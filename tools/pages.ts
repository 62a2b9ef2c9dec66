// Builds the pages of src/ui into modules that every way of running has: a clone, the package, a single executable.
//
//   bun tools/pages.ts            writes the modules of PAGES; test/ui sees whether they are as the sources say

import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'

const root = resolve(import.meta.dir, '..')
const ui = join(root, 'src/ui')

interface Page {
  readonly title: string
  /** Below `src/ui`. */
  readonly entry: string
  readonly styles: readonly string[]
  /** The module that is written. */
  readonly module: string
}

export const PAGES: Readonly<Record<'inspector' | 'admin', Page>> = {
  inspector: {
    title: 'localtunnels inspector',
    entry: 'inspector/main.tsx',
    styles: ['src/ui/style.css'],
    module: 'src/client/inspect/page-text.ts',
  },
  admin: {
    title: 'localtunnels admin',
    entry: 'admin/main.tsx',
    styles: ['src/ui/style.css', 'src/ui/admin.css', 'node_modules/uplot/dist/uPlot.min.css'],
    module: 'src/server/admin/page-text.ts',
  },
}

/** The module's text: the whole page, compressed as no archive of the package would, and the only script and style that may run in it. */
export async function pageModule({ title, entry, styles }: Page): Promise<string> {
  const { outputs, success, logs } = await Bun.build({
    entrypoints: [join(ui, entry)],
    root: ui,
    target: 'browser',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    throw: false,
  })
  const [output] = outputs
  if (!success || output === undefined) throw new Error(logs.map(({ message }) => message).join('\n'))
  // The end of a script cannot be a part of it.
  const script = (await output.text()).trim().replaceAll('</script', '<\\/script')
  const style = minified(styles.map(path => readFileSync(join(root, path), 'utf8')).join('\n'))
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head><body><script type="module">${script}</script></body></html>`
  const packed = brotliCompressSync(html, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: html.length } })
  return `// Written by tools/pages.ts from src/ui: change it there.

import { brotliDecompressSync } from 'node:zlib'

export const SCRIPT_HASH = '${hash(script)}'
export const STYLE_HASH = '${hash(style)}'
export const HTML: string = brotliDecompressSync(
  Buffer.from('${packed.toString('base64')}', 'base64'),
).toString()
`
}

function minified(css: string): string {
  return css
    .replace(/\s+/g, ' ')
    .replace(/\s*([{};,])\s*/g, '$1')
    .replace(/: /g, ':')
    .replaceAll(';}', '}')
    .trim()
}

function hash(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

if (import.meta.main)
  for (const page of Object.values(PAGES)) writeFileSync(join(root, page.module), await pageModule(page))
