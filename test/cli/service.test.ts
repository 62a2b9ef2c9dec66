// `localtunnels service`: the files that it writes, judged by systemd itself, and what it asks the service manager for.

import { expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { launchdList, systemdUnit } from '../../src/cli/service-file.ts'
import { testWith } from '../support/needs.ts'
import { folder, run } from '../support/programs.ts'
import { finish } from './bin.ts'

/** A folder whose `systemctl` notes what it is asked, and answers with `code`. */
async function managed(code = 0) {
  const dir = await folder('service')
  const systemctl = join(dir.path, 'systemctl')
  await Bun.write(systemctl, `#!/bin/sh\necho "$*" >> ${dir.path}/asked\necho active\nexit ${code}\n`)
  chmodSync(systemctl, 0o755)
  const env = { PATH: `${dir.path}:${process.env.PATH}`, XDG_CONFIG_HOME: dir.path }
  return {
    path: dir.path,
    unit: join(dir.path, 'systemd/user/localtunnels.service'),
    asked: () => readFileSync(join(dir.path, 'asked'), 'utf8').trim().split('\n'),
    service: (...words: readonly string[]) => finish(['service', ...words], env, dir.path),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  }
}

test('install writes a unit and starts it, status tells of it, remove stops and forgets it', async () => {
  await using manager = await managed()
  const installed = await manager.service('install', '--user', '--', 'up', '--config', 'a b.toml')
  expect(installed).toMatchObject({ exitCode: 0, stderr: '' })
  expect(installed.stdout).toBe(`${manager.unit} is written.\nIt runs, and starts again with the machine.\n`)
  const unit = readFileSync(manager.unit, 'utf8')
  expect(unit).toMatch(/^ExecStart=".*bun.*" ".*\/bin\/localtunnels\.ts" "up" "--config" "a b\.toml"$/m)
  expect(unit).toContain(`\nWorkingDirectory=${realpathSync(manager.path)}\n`)
  expect((await manager.service('status', '--user')).stdout).toBe(`runs: ${manager.unit} (active)\n`)
  const removed = await manager.service('remove', '--user')
  expect(removed.exitCode).toBe(0)
  expect(existsSync(manager.unit)).toBe(false)
  expect(manager.asked()).toEqual([
    '--user daemon-reload',
    '--user enable --now localtunnels.service',
    '--user is-active localtunnels.service',
    '--user disable --now localtunnels.service',
  ])
})

test('a service manager that fails is not hidden: what is left to do is said', async () => {
  await using manager = await managed(1)
  const { stdout, exitCode } = await manager.service('install', '--user')
  expect(exitCode).toBe(1)
  expect(stdout).toContain('Still to do:\n  systemctl --user daemon-reload\n  systemctl --user enable')
  expect((await manager.service('status', '--user')).stdout).toStartWith('does not run: ')
})

test('secrets, names that are none, and services that there are not, are refused', async () => {
  await using manager = await managed()
  for (const [words, says] of [
    [['install', '--user', '--', '3000', '--token', 'x'], '--token would stand in a file that others read'],
    [['install', '--user', '--', '3000', '--password=x'], '--password would stand'],
    [['install', '--user', '--name', '../x'], '"../x" is no name of a service'],
    [['status', '--user'], 'There is no service called localtunnels.'],
    [['remove', '--user', '--name', 'other'], 'There is no service called other.'],
  ] as const) {
    const { stderr, exitCode } = await manager.service(...words)
    expect(stderr).toContain(`error OPTION_INVALID: ${says}`)
    expect(exitCode).toBe(2)
  }
  expect(existsSync(manager.unit)).toBe(false)
})

const ODD = ['/bin/echo', 'a b', '"', "'", '\\', '$HOME', '%h', '${X}', ';', '']

testWith(['systemd-analyze'], 'systemd takes the unit, whatever the words are', async () => {
  await using dir = await folder('service')
  for (const isSystem of [true, false]) {
    const path = join(dir.path, `odd-${isSystem}.service`)
    await Bun.write(path, systemdUnit({ name: 'odd', command: ODD, folder: dir.path, isSystem }))
    const { err, code } = await run(['systemd-analyze', 'verify', '--man=no', path])
    expect(err).not.toContain('odd-')
    expect(code).toBe(0)
  }
})

test('the list of launchd has the words as they are', () => {
  const text = launchdList('dev.localtunnels.x', {
    name: 'x',
    command: ['/bin/echo', 'a & b', '<c>'],
    folder: '/tmp/d',
    isSystem: false,
  })
  expect(text).toContain('<string>a &amp; b</string>\n    <string>&lt;c&gt;</string>')
  expect(text).toContain('<key>WorkingDirectory</key>\n  <string>/tmp/d</string>')
})
