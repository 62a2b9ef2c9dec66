// Which rule a path falls under, in every spelling that an app may take for the same path.

import { expect, test } from 'bun:test'
import { Paths } from '../../src/plugins/paths.ts'
import type { Way } from '../../src/plugins/way.ts'

const way = (mark: string): Way => ({ kind: 'bearer', mark })
const standard = { ways: [way('standard')] }
const admin = { ways: [way('admin')] }
const inner = { ways: [way('inner')] }
const paths = new Paths(standard, { '/admin': admin, '/admin/inner/': inner }, ['/health', '/assets/*'])

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
    expect(() => new Paths(standard, { [path]: admin }, [])).toThrow(
      expect.objectContaining({ code: 'GUARD_INVALID' }),
    )
  for (const path of ['assets/*', '/a/../*'])
    expect(() => new Paths(standard, {}, [path])).toThrow(expect.objectContaining({ code: 'GUARD_INVALID' }))
})
