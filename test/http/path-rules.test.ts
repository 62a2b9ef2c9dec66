// Which rule a path falls under, in every spelling that an app may take for the same path.

import { expect, test } from 'bun:test'
import { isSurelyBelow, PathRules } from '../../src/paths/path-rules.ts'
import type { Rule, Way } from '../../src/plugins/way.ts'

const way = (mark: string): Way => ({ kind: 'bearer', mark })
const standard: Rule = { ways: [way('standard')] }
const admin = { ways: [way('admin')] }
const inner = { ways: [way('inner')] }
const paths = new PathRules(standard, { '/admin': admin, '/admin/inner/': inner }, ['/health', '/assets/*'], {
  ways: [],
})

const markOf = (target: string) => {
  const rule = paths.ruleOf(target)
  return rule === undefined ? 'refused' : (rule.ways[0]?.mark ?? 'open')
}

test('the longest path wins, by whole segments', () => {
  expect(markOf('/')).toBe('standard')
  expect(markOf('/admin')).toBe('admin')
  expect(markOf('/admin?x=/assets/')).toBe('admin')
  expect(markOf('/admin/x')).toBe('admin')
  expect(markOf('/administrator')).toBe('standard')
  expect(markOf('/admin/inner')).toBe('inner')
  expect(markOf('/admin/inner/x')).toBe('inner')
})

test('open paths are exact, or everything behind the star', () => {
  expect(markOf('/health')).toBe('open')
  expect(markOf('/health?full')).toBe('open')
  expect(markOf('/health/x')).toBe('standard')
  expect(markOf('/assets/a/b.css')).toBe('open')
  expect(markOf('/Health')).toBe('standard')
})

test('an app that ignores case is not reached around the rule of a path', () => {
  expect(markOf('/ADMIN/x')).toBe('admin')
})

test('a path that costs too much to look at is refused: 512 characters, 64 odd places, 16 readings at most', () => {
  const odd = (length: number) => `/${'%41'.repeat(64)}`.padEnd(length, 'a')
  expect(markOf(odd(513))).toBe('refused')
  expect(markOf(odd(512))).toBe('standard')
  expect(markOf(`/${'%41'.repeat(65)}`)).toBe('refused')
  expect(markOf(`/${'x/./'.repeat(64)}`)).toBe('standard')
  expect(markOf(`/${'x/./'.repeat(65)}`)).toBe('refused')
  expect(markOf('/x/%252e%252e/b%3fc')).toBe('standard')
  expect(markOf('//x;a/%252e%252e;b/%2e%2e/c%3fd\\e%00')).toBe('refused')
  expect(markOf(`/${'a'.repeat(16_000)}`)).toBe('standard')
  expect(markOf(`/?${'%41'.repeat(5_000)}`)).toBe('standard')
  expect(isSurelyBelow(`/a/${'%41'.repeat(65)}`, '/a')).toBe(false)
  expect(isSurelyBelow(`/a/${'%41'.repeat(64)}`, '/a')).toBe(true)
  for (const dots of ['%u002e%u002e', '%c0%ae%c0%ae', '\xc0\xae.'])
    expect([dots, isSurelyBelow(`/a/${dots}/b`, '/a')]).toEqual([dots, false])
})

test('letters that are not ASCII are not odd, however browsers escape them', () => {
  for (const letters of ['статьи/как-настроить-туннель-для-вебхуков', '漢'.repeat(100)]) {
    const path = `/docs/${encodeURI(letters)}`
    expect(markOf(path)).toBe('standard')
    expect(isSurelyBelow(path, '/docs')).toBe(true)
    expect(isSurelyBelow(path, path)).toBe(true)
    expect(isSurelyBelow(path, '/other')).toBe(false)
    // Bytes as some clients send them.
    expect(isSurelyBelow(Buffer.from(decodeURIComponent(path)).toString('latin1'), path)).toBe(true)
  }
})

test('a path is surely below itself, however strangely it is spelled', () => {
  const strange = `/${'%41'.repeat(100)}//a;b`
  expect(isSurelyBelow(`${strange}?x`, strange)).toBe(true)
  expect(isSurelyBelow(`${strange}/x`, strange)).toBe(false)
})

test('a path that can be read as another one with another rule is refused', () => {
  for (const target of [
    '/assets/../admin',
    '/assets/%2e%2e/admin',
    '/assets/..%2fadmin',
    '/assets/%252e%252e/admin',
    '/assets/..\\admin',
    '/assets/..;/admin',
    '//admin',
    '/./admin',
    '/%61dmin',
    '/x/../admin/inner',
    '/secret/../health',
    '/assets//../../admin',
    '/admin;x=1',
  ])
    expect([target, markOf(target)]).toEqual([target, 'refused'])
})

test('an app that takes two slashes for another host is not reached around the rule of a path', () => {
  for (const target of [
    '//x/admin',
    '///x/admin',
    '/\\x/admin',
    '//x/y/../admin',
    '//u:p@x:1/%61dmin',
    '/%2fx/admin',
  ])
    expect([target, markOf(target)]).toEqual([target, 'refused'])
  expect(markOf('//x/page')).toBe('standard')
})

test('a path is refused whose escapes lead away only where some of them are decoded', () => {
  for (const target of [
    // `new URL` decodes dots, and no slashes.
    '/assets/%2e%2e/admin/..%2f..%2fassets/x',
    '/assets/.%2E/admin/%2e%2e%2f%2e%2e%2fassets/x',
    // Tomcat takes parameters out before it decodes.
    '/assets/%2e%2e;x%2f..%2f..%2fassets/admin',
    // What an app in C, or one that decodes before it looks for the query, takes for the end.
    '/admin%00.css',
    '/admin%3fx',
    '/admin%23x',
    // `new URL` of what was decoded: it looks for the end first, and takes tabs, line ends and blanks behind out.
    '/assets/..%3fx/admin',
    '/assets/..%23',
    '/assets/%09..',
    '/assets/.%0a./x',
    '/admin%20',
    '/%09admin',
    // Slashes made one, and dots left alone.
    '//admin/..',
    '///x//admin',
    // IIS decodes `%u002e`, and old decoders take UTF-8 that is longer than it has to be.
    '/assets/%u002e%u002E/admin',
    '/assets/..%u002fadmin',
    '/assets/%c0%ae%C0%AE/admin',
    '/assets/..%c0%afadmin',
    '/assets/\xc0\xae\xc0\xae/admin',
    '/%c1%a1dmin',
    '/assets/%e0%80%ae%e0%80%ae/admin',
    '/assets/\xe0\x80\xae./admin',
    '/assets/%f0%80%80%ae%f0%80%80%ae/admin',
    '/assets/..%e0%80%afadmin',
    '/%e0%81%a1dmin',
    // NUL left out.
    '/assets/.%00./admin',
    '/ad%00min',
  ])
    expect([target, markOf(target)]).toEqual([target, 'refused'])
})

test('a path with letters that are not ASCII has its rule, escaped as browsers do or not', () => {
  const some = new PathRules<Rule>({ ways: [] }, { '/büro': admin }, ['/größe/*'])
  const raw = (path: string) => Buffer.from(path).toString('latin1')
  const rule = (path: string) => some.ruleOf(path)?.ways[0]?.mark ?? 'open'
  for (const path of ['/b%C3%BCro', '/b%c3%bcro/x', raw('/büro'), '/B%C3%BCRO', raw('/BüRO/x')])
    expect([path, rule(path)]).toEqual([path, 'admin'])
  expect(rule('/b%C3%BCros')).toBe('open')
  // Apps that ignore case do so in ASCII, or in all letters.
  for (const path of ['/B%C3%9CRO', raw('/BÜRO/x')]) expect(some.ruleOf(path)).toBeUndefined()
  const closed = new PathRules(standard, {}, ['/größe/*'], { ways: [] })
  expect(closed.ruleOf('/gr%C3%B6%C3%9Fe/x')?.ways).toEqual([])
  expect(closed.ruleOf('/gr%F6%DFe/x')).toBe(standard)
})

test('a letter that only Unicode folds to one of ASCII is not that letter, nor another one', () => {
  const some = new PathRules(standard, { '/hooks/stripe': admin, '/voilà': inner })
  expect(some.ruleOf('/HOOKS/Stripe/%FF')).toBe(admin)
  for (const path of ['/hoo%E2%84%AAs/stripe/%FF', '/hoo\xe2\x84\xaas/stripe', '/hook%C5%BF/stripe'])
    expect([path, some.ruleOf(path)]).toEqual([path, undefined])
  expect(some.ruleOf('/%E2%84%AA')).toBe(standard)
  // The last byte of this letter is a blank elsewhere.
  expect(some.ruleOf('/voil%C3%A0')).toBe(inner)
  expect(some.ruleOf('/voil%C3%A0/x')).toBe(inner)
})

test('escapes that mean nothing here are let pass', () => {
  expect(markOf('/@scope%2fname')).toBe('standard')
  expect(markOf('/a%20b')).toBe('standard')
  expect(markOf('/admin/a%20b')).toBe('admin')
  expect(markOf('/assets/a%20b')).toBe('open')
  expect(markOf('/%')).toBe('standard')
  expect(markOf('/health/../secret')).toBe('standard')
})

test('paths that could be read in two ways cannot be configured', () => {
  for (const path of ['admin', '/a//b', '/a/../b', '/a%20b', '/a?b', '/a\\b', ''])
    expect(() => new PathRules(standard, { [path]: admin }, [])).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  for (const path of ['assets/*', '/a/../*'])
    expect(() => new PathRules(standard, {}, [path])).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
})
