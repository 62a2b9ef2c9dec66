// What docs/inspector.md, docs/webhooks.md and docs/agents.md show works as printed. Their programs run in test/readme.test.ts, the
// tools for agents in test/cli/mcp.test.ts.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { isFilterFault, parseFilter } from '../../../src/exchange-filter.ts'
import { InspectApi } from '../../../src/parts/inspect/api.ts'
import { ConfigFiles } from '../../support/config-files.ts'
import { unknownWords } from '../../support/documented-commands.ts'

const root = join(import.meta.dir, '../../..')
const textOf = (path: string) => Bun.file(join(root, path)).text()
const PAGES = ['inspector', 'webhooks', 'agents'] as const
const ENVIRONMENT = { STRIPE_WEBHOOK_SECRET: 'whsec' }

test.each(PAGES)('docs/%s.md: each file means what it should, with nothing to complain about', async page => {
  const examples = [...(await textOf(`docs/${page}.md`)).matchAll(/^```toml\n([\s\S]*?)^```$/gm)]
  await using files = await ConfigFiles.make()
  for (const [index, [, example = '']] of examples.entries()) {
    // Parts of a file, whose service is another part.
    const server = 'server = "https://tunnel.example"\n'
    const service = example.includes('[services.') ? '' : '\n[services.app]\nport = 3000\n'
    const loaded = await files.load(`${index}.toml`, server + example + service, ENVIRONMENT)
    expect(loaded).toMatchObject({ faults: [] })
  }
})

test.each(PAGES)('docs/%s.md: each command is one of localtunnels, with flags that it has', async page => {
  expect(unknownWords(await textOf(`docs/${page}.md`))).toEqual([])
})

test('docs/inspector.md: its filter is one, and finds what it says', async () => {
  const page = await textOf('docs/inspector.md')
  const [, example = ''] = /\n```\n(method:.*)\n```\n/.exec(page) ?? []
  const filter = parseFilter(example)
  if (isFilterFault(filter)) throw new Error(filter.message)
  expect(filter.needsContent).toBe(true)
  // The terms of its list, too: what stands in code before the colon of each item.
  const [, list = ''] = page.split(/^(?=- `POST`)/m)
  const terms = [...(list.split('\n\n')[0] ?? '').matchAll(/^- (.*?`): /gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, term = '']) => term),
  )
  expect(terms.length).toBeGreaterThan(20)
  for (const term of terms.flatMap(one => one.split(/, (?=")/)).filter(one => one !== 'is:…'))
    expect([term, isFilterFault(parseFilter(term))]).toEqual([term, false])
})

test('docs/inspector.md: its list of the API has every operation, and no other', async () => {
  const [, section = ''] = (await textOf('docs/inspector.md')).split('\n## API\n')
  const listed = [...section.matchAll(/^- (`.*?`): /gm)].flatMap(([, cell = '']) => {
    // `PUT exchanges/:id/pin`, `…/note`: the second one begins as the first.
    const [first = '', ...others] = [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
    const base = first.slice(0, first.lastIndexOf('/'))
    return [first, ...others.map(one => one.replace('…', base))]
  })
  const shape = (text: string) => {
    const [method = '', path = ''] = text.split(' ')
    return `${method} /${path
      .split('?')[0]
      ?.replace(':id', '{id}')
      .replace(/\{curl.*\}/, '{format}')}`
  }
  // Only its list is looked at.
  const { operations } = new InspectApi(undefined as never, '', () => 0)
  expect(new Set([...listed.map(shape), 'GET /openapi.json'])).toEqual(new Set(Object.keys(operations)))
})

test('docs/inspector.md: its keys are those of the page', async () => {
  const page = await textOf('docs/inspector.md')
  const [, list = ''] = page.split(/^(?=- `j` `k`)/m)
  const told = [...(list.split('\n\n')[0] ?? '').matchAll(/^- (`.*?): /gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, key = '']) => key),
  )
  const source = await textOf('src/ui/inspector/keys.ts')
  const keys = [...source.matchAll(/\{ keys: \[([^\]]*)\]/g)].map(([, list = '']) =>
    (/'([^']+)'/.exec(list)?.[1] ?? '').replace(' ', 'Space'),
  )
  // Those that go without saying.
  expect(new Set(told)).toEqual(new Set(keys.filter(key => key !== 'Home' && key !== 'End')))
})
