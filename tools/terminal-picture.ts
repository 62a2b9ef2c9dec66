// Draws what a terminal shows while an app is shared: the real program on a real terminal, its screen as an SVG for light and dark.
//
//   bun tools/terminal-picture.ts        writes docs/images/terminal.svg. Needs openssl

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type IBufferCell, Terminal } from '@xterm/headless'
import { TunnelServer } from '../src/index.ts'
import { makeCertificate } from '../test/support/certificates.ts'

const root = resolve(import.meta.dir, '..')
const [COLUMNS, ROWS] = [80, 21]
/** Of one cell, in px: what monospaced fonts of 14 px come close to. */
const [CELL_WIDTH, CELL_HEIGHT, MARGIN] = [8.43, 20, 18]
/** Classes of the first colours of the palette; others are drawn as text. */
const COLOURS = ['', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', ''] as const

/** Names in the picture, and whose colours they have. */
const TOKENS = {
  text: 'text',
  dim: 'text-3',
  red: 'bad',
  green: 'ok',
  yellow: 'warn',
  blue: 'info',
  magenta: 'info',
  cyan: 'accent-text',
  back: 'canvas',
  line: 'line',
}

const ANSWERS: Readonly<Record<string, () => Response>> = {
  '/': () => new Response('x'.repeat(4_100), { headers: { 'content-type': 'text/html' } }),
  '/style.css': () => new Response('x'.repeat(1_300)),
  '/logo.svg': () => new Response('x'.repeat(360)),
  '/api/products?category=hats&sort=price&page=1&utm_source=newsletter': () =>
    new Response('x'.repeat(11_000)),
  '/api/cart': () => new Response('x'.repeat(48), { status: 201 }),
  '/webhooks/github push': () => new Response('x'.repeat(155), { status: 500 }),
  '/webhooks/github pull_request': () => new Response('{"queued":true}'),
}

const app = Bun.serve({
  port: 0,
  fetch: ({ url, headers }) => {
    const { pathname, search } = new URL(url)
    const event = headers.get('x-github-event')
    return (
      ANSWERS[pathname + search + (event === null ? '' : ` ${event}`)]?.() ??
      new Response(null, { status: 404 })
    )
  },
})
const screen = new Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true, convertEol: false })
let text = ''
const certificate = await makeCertificate(['localhost', 'shop.localhost'])
const server = new TunnelServer({ host: '127.0.0.1', port: 0, tls: certificate })
await server.start()
const folder = mkdtempSync(join(tmpdir(), 'localtunnels-picture-'))
writeFileSync(join(folder, 'ca.pem'), certificate.cert)
const child = Bun.spawn({
  cmd: [
    'bun',
    join(root, 'bin/localtunnels.ts'),
    `${app.port}`,
    ...['--server', `https://localhost:${server.port}`, '--ca', join(folder, 'ca.pem')],
    ...['--subdomain', 'shop', '--inspect'],
  ],
  env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', TERM: 'xterm-256color', COLORTERM: 'truecolor' },
  terminal: {
    cols: COLUMNS,
    rows: ROWS,
    data: (_, bytes) => {
      text += Buffer.from(bytes).toString()
      screen.write(bytes)
    },
  },
})

async function shown(what: RegExp): Promise<string> {
  for (const until = Date.now() + 10_000; Date.now() < until; await Bun.sleep(20)) {
    const found = what.exec(text)
    if (found !== null) return found[0]
  }
  throw new Error(`the program did not show ${what.source}`)
}

const url = new URL(await shown(/https:\/\/shop\.localhost:\d+/))
const ask = (path: string, method: string) => {
  const [target = '', event] = path.split(' ')
  const headers = { ...(event !== undefined && { 'x-github-event': event }) }
  return fetch(new URL(target, url), { method, headers, tls: { ca: certificate.cert } })
}
for (const path of [...Object.keys(ANSWERS), '/', '/search?q=hat', '/api/cart']) {
  await ask(path, /cart|hooks/.test(path) ? 'POST' : 'GET').then(answer => answer.arrayBuffer())
  await Bun.sleep(400)
}
await shown(/p95/)
await Bun.sleep(300)
// What was written last is on the screen.
await new Promise<void>(resolve => screen.write('', resolve))
// The domain and the ports are those of this run, the key that of the inspector.
const tidy = (line: string) =>
  line
    .replace(/\.localhost:\d+/, '.tunnel.example')
    .replace(`localhost:${app.port}`, 'localhost:3000')
    .replace(`localhost:${server.port}`, 'tunnel.example')
    .replace(/^(http:\/\/127\.0\.0\.1:)\d+\/#.*/, (_, start: string) => `${start}4040/#8kqT…`)
writeFileSync(join(root, 'docs/images/terminal.svg'), drawn())
child.kill('SIGTERM')
await child.exited
await server.stop()
await app.stop(true)
rmSync(folder, { recursive: true })

function drawn(): string {
  const lines: string[] = []
  const buffer = screen.buffer.active
  for (let row = 0; row < buffer.length; row++) {
    const pieces = piecesOf(row)
    if (pieces === '') continue
    lines.push(`<text y="${MARGIN + (row + 1) * CELL_HEIGHT}">${pieces}</text>`)
  }
  const width = Math.ceil(COLUMNS * CELL_WIDTH + 2 * MARGIN)
  const height = MARGIN * 2 + (lastRow(buffer.length) + 1) * CELL_HEIGHT
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A terminal: the public URL, the inspector's, and a line for each request">
<style>
svg{${coloursOf(1)}}
@media(prefers-color-scheme:dark){svg{${coloursOf(2)}}}
rect{fill:var(--back);stroke:var(--line)}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--text);white-space:pre}
.bold{font-weight:600}.dim{fill:var(--dim)}${COLOURS.filter(one => one !== '')
    .map(one => `.${one}{fill:var(--${one})}`)
    .join('')}
</style>
<rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="8"/>
${lines.join('\n')}
</svg>
`
}

/** Colours of a theme, light or dark, as the pages of the product have them. */
function coloursOf(theme: 1 | 2): string {
  const tokens = readFileSync(join(root, 'src/ui/tokens.css'), 'utf8')
  return Object.entries(TOKENS)
    .map(
      ([name, token]) =>
        `--${name}:${new RegExp(`--${token}: light-dark\\((.+?), (.+?)\\)`).exec(tokens)?.[theme]}`,
    )
    .join(';')
}

/** A `tspan` for each run of cells that look alike. Each word has a place of its own, whatever the font. */
function piecesOf(row: number): string {
  const line = screen.buffer.active.getLine(row)
  if (line === undefined) return ''
  const runs: { at: number; text: string; look: string }[] = []
  for (let at = 0; at < line.length; at++) {
    const cell = line.getCell(at)
    const chars = cell?.getChars() ?? ''
    if (cell === undefined || chars === '' || chars === ' ') continue
    const look = lookOf(cell)
    const last = runs.at(-1)
    if (last !== undefined && last.at + last.text.length === at && last.look === look) last.text += chars
    else runs.push({ at, text: chars, look })
  }
  return runs
    .map(({ at, text: run, look }) => {
      const x = (MARGIN + at * CELL_WIDTH).toFixed(1)
      const name = look === '' ? '' : ` class="${look}"`
      return `<tspan x="${x}"${name}>${escaped(tidy(run))}</tspan>`
    })
    .join('')
}

function lookOf(cell: IBufferCell): string {
  const colour = cell.isFgPalette() ? COLOURS[cell.getFgColor() % 8] : ''
  const isGrey = cell.isDim() !== 0 || (cell.isFgPalette() && cell.getFgColor() === 8)
  return [isGrey ? 'dim' : colour, cell.isBold() === 0 ? '' : 'bold'].filter(one => one !== '').join(' ')
}

function lastRow(count: number): number {
  for (let row = count - 1; row > 0; row--)
    if (screen.buffer.active.getLine(row)?.translateToString(true)) return row
  return 0
}

function escaped(run: string): string {
  return run.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
