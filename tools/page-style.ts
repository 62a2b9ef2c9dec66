// The style of the pages for visitors, and the mark in front of their address: Bun runs this while it reads src/http/pages.ts, so
// that a package and an executable have the text alone.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ui = join(import.meta.dirname, '../src/ui')

/** The rules of page.css behind those tokens that they use. Each theme has plain colours: older browsers know no light-dark(). */
function pageStyle(): string {
  const rules = squeezed('page.css')
  const values = new Map(
    [...squeezed('tokens.css').matchAll(/--([\w-]+):\s?([^;}]+)/g)].map(([, name = '', value = '']) => [
      name,
      value,
    ]),
  )
  const used = new Set<string>()
  const use = (text: string): void => {
    for (const [, name = ''] of text.matchAll(/var\(--([\w-]+)\)/g)) {
      if (used.has(name)) continue
      used.add(name)
      use(values.get(name) ?? '')
    }
  }
  use(rules)
  const tokens = [...used].map(name => [name, values.get(name) ?? ''] as const)
  const themed = tokens.filter(([, value]) => value.includes('light-dark('))
  const declared = (all: typeof tokens, side: '$1' | '$2') =>
    all
      .map(([name, value]) => `--${name}:${value.replace(/light-dark\(([^,]+), ?([^)]+)\)/, side)}`)
      .join(';')
  return `:root{color-scheme:light dark;${declared(tokens, '$1')}}@media(prefers-color-scheme:dark){:root{${declared(themed, '$2')}}}${rules}`
}

/** All of it: Bun runs one call faster than three. */
export function pageParts(): { readonly style: string; readonly styleHash: string; readonly icon: string } {
  const style = pageStyle()
  const svg = readFileSync(join(ui, 'mark.svg'), 'utf8').replace(/\n\s*/g, '')
  return {
    style,
    styleHash: `sha256-${createHash('sha256').update(style).digest('base64')}`,
    icon: `data:image/svg+xml,${encodeURIComponent(svg)}`,
  }
}

/** Without comments and line ends. */
function squeezed(name: string): string {
  return readFileSync(join(ui, name), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replace(/: /g, ':')
    .replaceAll(';}', '}')
    .trim()
}
