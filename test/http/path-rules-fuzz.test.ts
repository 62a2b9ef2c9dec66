// Random spellings of paths, resolved as apps resolve them: none may be answered under another rule than the path's that the app finds.

import { expect, test } from 'bun:test'
import { posix } from 'node:path'
import { PathRules } from '../../src/paths/path-rules.ts'
import { Rewriting } from '../../src/paths/rewriting.ts'
import type { Rule } from '../../src/plugins/way.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

const standard: Rule = { ways: [{ kind: 'bearer', mark: 'standard' }] }
const admin: Rule = { ways: [{ kind: 'password', mark: 'admin' }] }
const paths = new PathRules(standard, { '/admin': admin }, ['/open/*'], { ways: [] })

const PIECES =
  '/ // open admin Admin x . .. %2e %2E%2e %2f %5c \\ ; ;a=b %3b %25 %252e %252f %00 ? # %3f %23 %61dmin adm%69n %c3%a9 %e0%80%ae %f0%80%80%ae %e0%80%af %e2%84%aa .%00. %20 + * @ : %2e%2e%2f & = a.example % %zz %09 %0d%0a ~'.split(
    ' ',
  )

const withoutQuery = (target: string) => target.split(/[?#]/, 1)[0] ?? ''
const decoded = (text: string) =>
  text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
const lenient = (text: string) =>
  text.replace(/[\xe0\xf0]\x80+([\x80-\xbf])/g, (_, last: string) =>
    String.fromCharCode(last.charCodeAt(0) & 63),
  )
const withoutParameters = (text: string) => text.replace(/;[^/]*/g, '')
const pathOfUrl = (text: string) => (URL.canParse(text, 'http://a') ? new URL(text, 'http://a').pathname : '')

/** What apps do with a target. */
const apps: Readonly<Record<string, (target: string) => string>> = {
  'as it is': withoutQuery,
  'new URL': pathOfUrl,
  'new URL of the host and the target': target => pathOfUrl(`http://a${target}`),
  'new URL, decoded': target => decoded(pathOfUrl(`http://a${target}`)),
  'decoded, new URL': target => pathOfUrl(decoded(withoutQuery(target))),
  'decoded twice, new URL': target => pathOfUrl(decoded(decoded(withoutQuery(target)))),
  'decoded, resolved': target => posix.normalize(decoded(withoutQuery(target))),
  'resolved, decoded': target => decoded(posix.normalize(withoutQuery(target))),
  'decoded twice, resolved': target => posix.normalize(decoded(decoded(withoutQuery(target)))),
  'decoded, as on Windows': target => posix.normalize(decoded(withoutQuery(target)).replaceAll('\\', '/')),
  'without parameters, decoded, resolved': target =>
    posix.normalize(decoded(withoutParameters(withoutQuery(target)))),
  'decoded, without parameters, resolved': target =>
    posix.normalize(withoutParameters(decoded(withoutQuery(target)))),
  'decoded, slashes made one': target => decoded(withoutQuery(target)).replace(/\/+/g, '/'),
  'decoded, to NUL': target => decoded(withoutQuery(target)).split('\0')[0] ?? '',
  'decoded, without NUL': target => posix.normalize(decoded(withoutQuery(target)).replaceAll('\0', '')),
  'decoded leniently, resolved': target => posix.normalize(lenient(decoded(withoutQuery(target)))),
  'decoded, without blanks': target => decoded(withoutQuery(target)).trim(),
}

/** Whether the app answers a path that needs more than the rule asks for. `/open` itself is what apps take `/open/` for. */
function isAround(path: string, { ways }: { readonly ways: readonly unknown[] }): boolean {
  const plain = path.toLowerCase()
  if (/^\/+admin(?:\/|$)/.test(plain)) return ways !== admin.ways
  return ways.length === 0 && !/^\/+open(?:\/|$)/.test(plain) && !['', '/', '.'].includes(plain)
}

test('no spelling of a path leads around its rule', () => {
  const around: string[] = []
  const count = 20_000 * FUZZ
  let judged = 0
  for (let seed = 0; seed < count; seed++) {
    const random = new Random(seed)
    const pieces = Array.from({ length: 1 + random.below(7) }, () => random.pick(PIECES))
    const target = `/${random.below(10) < 7 ? 'open/' : ''}${pieces.join('')}`
    const rule = paths.ruleOf(target)
    if (rule === undefined) continue
    judged++
    for (const [app, read] of Object.entries(apps))
      if (isAround(read(target), rule)) around.push(`${app}: ${JSON.stringify(target)}`)
  }
  countInputs('paths of guards', count)
  expect(around).toEqual([])
  // Not by refusing all of them.
  expect(judged).toBeGreaterThan(count / 2)
})

test.each([
  ['/app', ''],
  ['', '/site'],
  ['/app', '/site'],
])(
  'with the prefix %j removed and %j added, rules for the paths of visitors hold for those of the app',
  (strip, add) => {
    const rewriting = new Rewriting({ app: 'http://a', headers: [], stripPrefix: strip, addPrefix: add })
    const rules = new PathRules(standard, { [`${strip}/admin`]: admin, [`${strip}/app/admin`]: admin })
    const around: string[] = []
    const count = 20_000 * FUZZ
    let judged = 0
    for (let seed = 0; seed < count; seed++) {
      const random = new Random(seed)
      const pieces = Array.from({ length: 1 + random.below(7) }, () =>
        random.pick([...PIECES, 'app', 'site']),
      )
      const target = `${random.below(10) < 8 ? strip : ''}/${pieces.join('')}`
      const rule = rules.ruleOf(target)
      const own = rewriting.target(target)
      if (rule === undefined || own === undefined) continue
      judged++
      for (const [app, read] of Object.entries(apps)) {
        const path = read(own)
        const isAdmin = new RegExp(`^/*${add}/+(?:app/+)?admin(?:/|$)`, 'i').test(path)
        const isOutside = !path.replace(/^\/+/, '/').startsWith(add)
        if ((isAdmin && rule !== admin) || isOutside)
          around.push(`${app}: ${JSON.stringify([target, own, path])}`)
      }
    }
    countInputs('paths of guards and prefixes', count)
    expect(around).toEqual([])
    expect(judged).toBeGreaterThan(count / 3)
  },
)
