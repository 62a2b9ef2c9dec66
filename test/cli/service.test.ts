// `localtunnels service`: the files that it writes, judged by systemd itself, and what it asks the service manager for.

import { expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accountOf } from '../../src/cli/service-account.ts'
import { launchdList, type ServiceSettings, systemdUnit } from '../../src/cli/service-file.ts'
import { isSecretFlag } from '../../src/cli/service-words.ts'
import { commandsOf } from '../../src/cli/settings/environment.ts'
import { idleProgram } from '../support/idle-program.ts'
import { testWith } from '../support/needs.ts'
import { folder, isRoot, run } from '../support/programs.ts'
import { BIN, finish } from './bin.ts'

/** A folder whose `systemctl` notes what it is asked, and answers with `code`. */
async function managed(code = 0) {
  const dir = await folder('service')
  const systemctl = join(dir.path, 'systemctl')
  await Bun.write(systemctl, `#!/bin/sh\necho "$*" >> ${dir.path}/asked\necho active\nexit ${code}\n`)
  for (const name of ['localtunnels.toml', 'a b.toml'])
    await Bun.write(join(dir.path, name), '[services.app]\nport = 3000\n')
  chmodSync(systemctl, 0o755)
  const env = { PATH: `${dir.path}:${process.env.PATH}`, XDG_CONFIG_HOME: dir.path }
  return {
    env,
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
  expect(installed.stdout).toBe(`${manager.unit} is written.\nIt runs, and starts again with your session.\n`)
  const unit = readFileSync(manager.unit, 'utf8')
  expect(unit).toMatch(
    /^ExecStart="\/.*bun.*" "--use-system-ca" "--no-env-file" "--config=\/dev\/null" "--tsconfig-override=\/dev\/null" ".*\/bin\/localtunnels\.ts" "up" "--config" "a b\.toml"$/m,
  )
  expect(unit).toContain(`\nWorkingDirectory=${realpathSync(manager.path)}\n`)
  expect((await manager.service('status', '--user')).stdout).toBe(`runs: ${manager.unit} (active)\n`)
  const removed = await manager.service('remove', '--user')
  expect(removed.exitCode).toBe(0)
  expect(existsSync(manager.unit)).toBe(false)
  expect([...new Set(manager.asked())]).toEqual([
    '--user daemon-reload',
    '--user enable --now localtunnels.service',
    '--user is-active localtunnels.service',
    '--user disable --now localtunnels.service',
  ])
})

test('a service that ends at once does not run', async () => {
  await using manager = await managed()
  await Bun.write(
    join(manager.path, 'systemctl'),
    '#!/bin/sh\ncase "$*" in *is-active*) echo activating; exit 3;; esac\n',
  )
  const { stdout, exitCode } = await manager.service('install', '--user', '--', '3000')
  expect(stdout).toContain('It does not stay up (activating)')
  expect(stdout).not.toContain('It runs')
  expect(exitCode).toBe(1)
})

test.each([[], ['--', 'up', '--config', 'missing.toml'], ['--', 'server', '--config', 'missing.toml']])(
  'without its file no unit is written: %j',
  async (...words) => {
    await using manager = await managed()
    rmSync(join(manager.path, 'localtunnels.toml'))
    rmSync(join(manager.path, 'a b.toml'))
    const { stderr, exitCode } = await manager.service('install', '--user', ...words)
    expect(stderr).toContain('error CONFIG_INVALID: ')
    expect(exitCode).toBe(2)
    expect(existsSync(manager.unit)).toBe(false)
  },
)

test.each([
  ['OPTION_INVALID', 'notaport'],
  ['OPTION_INVALID', '3000 --route api=1'],
  ['OPTION_INVALID', 'tcp 99999'],
  ['OPTION_INVALID', 'server --workers many'],
  ['OPTION_INVALID', 'server --nothing'],
  ['CONFIG_INVALID', 'up --config wrong.toml'],
  ['CONFIG_INVALID', 'up --config server.toml'],
  ['CONFIG_INVALID', 'server --config wrong.toml'],
  ['CONFIG_INVALID', 'server --config no-key.toml'],
])('what would end at its start is refused before a unit is written: %s %j', async (code, words) => {
  await using manager = await managed()
  const files = {
    'wrong.toml': '[services.app]\nprot = 3000\n',
    'server.toml': 'domains = ["tunnel.example"]\n',
    'no-key.toml': '[tls]\ncert = "absent.pem"\nkey = "absent.pem"\n',
  }
  for (const [name, text] of Object.entries(files)) await Bun.write(join(manager.path, name), text)
  const { stderr, exitCode } = await manager.service('install', '--user', '--', ...words.split(' '))
  expect(stderr).toContain(`error ${code}: `)
  expect(exitCode).toBe(2)
  expect(existsSync(manager.unit)).toBe(false)
})

test('a file that is found is checked as one, and one that is a program does not run at the installation', async () => {
  await using manager = await managed()
  await Bun.write(
    join(manager.path, 'localtunnels.toml'),
    'server = "https://other.example"\n[services.app]\nport = 3000\nhost = "10.0.0.1"\n',
  )
  const found = await manager.service('install', '--user')
  expect(found.stdout).toContain('localtunnels.toml:')
  expect(existsSync(manager.unit)).toBe(false)
  await Bun.write(join(manager.path, 'mine.ts'), `await Bun.write('ran', '')\nexport default {}\n`)
  await manager.service('install', '--user', '--', 'up', '--config', 'mine.ts')
  expect(existsSync(manager.unit)).toBe(true)
  expect(existsSync(join(manager.path, 'ran'))).toBe(false)
})

test('a service manager that fails is not hidden: what is left to do is said', async () => {
  await using manager = await managed(1)
  const { stdout, exitCode } = await manager.service('install', '--user')
  expect(exitCode).toBe(1)
  expect(stdout).toContain('Still to do:\n  systemctl --user daemon-reload\n  systemctl --user enable')
  expect((await manager.service('status', '--user')).stdout).toStartWith('does not run: ')
})

test('secrets of the command line and of variables stand in a file of their user alone', async () => {
  await using manager = await managed()
  const words = [
    'server',
    '--cluster',
    'redis://:hunter2@redis',
    '--acme-hmac-key=c2Vj"$`\\',
    '--token',
    'aaa',
    '--token',
    'bbb',
  ]
  const { stdout, exitCode } = await manager.service('install', '--user', '--', ...words, '--port', '8443')
  expect(exitCode).toBe(0)
  const path = join(manager.path, 'localtunnels/localtunnels.env')
  expect(stdout).toContain(`${path} has its variables, and only its user reads it.\n`)
  const unit = readFileSync(manager.unit, 'utf8')
  expect(unit).toMatch(/"server" "--port" "8443"$/m)
  expect(unit).toContain(`\nEnvironmentFile=${path}\n`)
  expect(unit).not.toMatch(/hunter2|c2Vj|aaa|bbb/)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  // As a shell reads it, so does systemd.
  const read = await run([
    'sh',
    '-c',
    `. ${path}; echo "$TUNNEL_SERVER_CLUSTER $TUNNEL_SERVER_ACME_HMAC_KEY $TUNNEL_SERVER_TOKEN"`,
  ])
  expect(read.out).toBe('redis://:hunter2@redis c2Vj"$`\\ aaa,bbb\n')
  // Without secrets there is no such file, and of an earlier installation nothing stays.
  await manager.service('install', '--user', '--', '3000')
  expect(existsSync(path)).toBe(false)
  await manager.service('install', '--user', '--', '3000', '--proxy', 'http://me:secret@proxy.example')
  expect(readFileSync(path, 'utf8')).toBe('TUNNEL_PROXY="http://me:secret@proxy.example"\n')
  await manager.service('remove', '--user')
  expect(existsSync(path)).toBe(false)
  const given = {
    TUNNEL_TOKEN: 'from-here',
    TUNNEL_SERVER: 'tunnel.example',
    TUNNEL_SERVER_TOKEN: 'not-of-this-command',
  }
  await finish(['service', 'install', '--user', '--', '3000'], { ...manager.env, ...given }, manager.path)
  expect(readFileSync(path, 'utf8')).toBe('TUNNEL_SERVER="tunnel.example"\nTUNNEL_TOKEN="from-here"\n')
})

test('every flag whose key is a secret in configuration files is one here', async () => {
  const flags = commandsOf(await idleProgram()).flatMap(({ options }) =>
    options.flatMap(({ long, envVar }) => (isSecretFlag(long ?? undefined) ? [`${long} ${envVar}`] : [])),
  )
  expect([...new Set(flags)].sort()).toEqual([
    '--acme-hmac-key TUNNEL_SERVER_ACME_HMAC_KEY',
    '--admin-token TUNNEL_ADMIN_TOKEN',
    '--admin-token TUNNEL_SERVER_ADMIN_TOKEN',
    '--bearer TUNNEL_BEARER',
    '--cluster TUNNEL_SERVER_CLUSTER',
    '--password TUNNEL_PASSWORD',
    '--proxy TUNNEL_PROXY',
    '--token TUNNEL_SERVER_TOKEN',
    '--token TUNNEL_TOKEN',
    '--url TUNNEL_ADMIN_URL',
  ])
})

test('what a folder brings along does not run in its service', async () => {
  await using manager = await managed()
  const clone = join(manager.path, "it's 100% $HOME")
  mkdirSync(clone)
  await Bun.write(
    join(clone, 'evil.ts'),
    `require('node:fs').writeFileSync(${JSON.stringify(join(manager.path, 'evil'))}, '')`,
  )
  await Bun.write(join(clone, 'bunfig.toml'), 'preload = ["./evil.ts"]\n')
  await Bun.write(join(clone, '.env'), 'TUNNEL_SERVER_NAME=evil\n')
  await Bun.write(
    join(clone, 'tsconfig.json'),
    '{ "compilerOptions": { "paths": { "commander": ["./evil.ts"] } } }',
  )
  const env = { ...manager.env, HOME: manager.path }
  const installed = await run(
    [
      'sh',
      '-c',
      'cd "$0" && exec "$@"',
      clone,
      BIN,
      'service',
      'install',
      '--user',
      '--',
      'config',
      'schema',
    ],
    env,
  )
  expect(installed).toMatchObject({ err: '', code: 0 })
  const unit = readFileSync(manager.unit, 'utf8')
  expect(unit).toContain(`\nWorkingDirectory=${realpathSync(manager.path)}/it's 100%% $HOME\n`)
  const line = /^ExecStart=(.*)$/m.exec(unit)?.[1] ?? ''
  const { out, code } = await run(['sh', '-c', `cd "$0" && exec ${line}`, clone], env)
  expect(out).toStartWith('{')
  expect(code).toBe(0)
  expect(existsSync(join(manager.path, 'evil'))).toBe(false)
})

test('secrets without a variable, names that are none, and services that there are not, are refused', async () => {
  await using manager = await managed()
  for (const [words, says] of [
    [
      ['install', '--user', '--', 'run', '--', 'npm', 'start', '--token', 'x'],
      '--token would be in a file that others can read',
    ],
    [['install', '--user', '--', '3000', '--token', 'x'], 'A service with --token needs --server'],
    [['install', '--user', '--', 'run', '--', 'curl', 'https://me:secret@host'], 'A password would be in'],
    [['install', '--user', '--', 'https://me:secret@localhost:3000'], 'The URL of the app has a login'],
    [['install', '--user', '--', '3000', '--bearer', 'a,b'], '--bearer with a comma would be in'],
    [['install', '--user', '--', '3000', '--prot', 'x'], 'A service cannot run these words: unknown option'],
    [['install', '--user', '--name', '../x'], '"../x" is not a valid name of a service'],
    [['status', '--user'], 'There is no service called localtunnels.'],
    [['remove', '--user', '--name', 'other'], 'There is no service called other.'],
  ] as const) {
    const { stderr, exitCode } = await manager.service(...words)
    expect(stderr).toContain(`error OPTION_INVALID: ${says}`)
    expect(exitCode).toBe(2)
  }
  expect(existsSync(manager.unit)).toBe(false)
})

for (const name of ['line\nExecStartPre=/bin/touch x', 'quote"', 'back\\', 'end '])
  test(`a folder called ${JSON.stringify(name)} is refused`, async () => {
    await using manager = await managed()
    const odd = join(manager.path, name)
    mkdirSync(odd, { recursive: true })
    const { stderr, exitCode } = await finish(['service', 'install', '--user'], manager.env, odd)
    expect(stderr).toContain('error OPTION_INVALID: The name of the folder')
    expect(exitCode).toBe(2)
  })

const ODD = ['/bin/echo', 'a b', '"', "'", '\\', '$HOME', '%h', '${X}', ';', '']
const settings = (besides: Partial<ServiceSettings>): ServiceSettings => ({
  name: 'odd',
  kind: 'up',
  command: ODD,
  folder: '/srv',
  isSystem: false,
  user: undefined,
  variables: {},
  variablesPath: '/etc/localtunnels/odd.env',
  ...besides,
})

testWith(['systemd-analyze'], 'systemd takes the unit, whatever the words are', async () => {
  await using dir = await folder('service')
  const odd = join(dir.path, '$a 100% b')
  mkdirSync(odd)
  symlinkSync('/bin/echo', join(odd, 'p$x'))
  for (const [index, besides] of [
    { isSystem: true },
    { isSystem: true, user: 'root', kind: 'server' },
    { kind: 'run' },
    { isSystem: false, variables: { A: 'b' } },
  ].entries()) {
    const path = join(dir.path, `odd-${index}.service`)
    const command = [join(odd, 'p$x'), ...ODD]
    await Bun.write(path, systemdUnit(settings({ command, folder: odd, ...besides })))
    const { err, code } = await run(['systemd-analyze', 'verify', '--man=no', path])
    expect(err).not.toContain('odd-')
    expect(code).toBe(0)
  }
})

testWith(['systemd-analyze'], 'a service of the machine is held as tightly as the packaged one', async () => {
  await using dir = await folder('service')
  const packaged = await Bun.file(
    join(import.meta.dir, '../../packaging/systemd/localtunnels.service'),
  ).text()
  const limits = (unit: string) =>
    unit
      .split('\n')
      .filter(line => /^(?!Exec|Env|State|Working)[A-Z].+=/.test(line))
      .sort()
  const unit = systemdUnit(settings({ isSystem: true, folder: '/etc/localtunnels' }))
  expect(limits(unit)).toEqual(
    expect.arrayContaining(limits(packaged).filter(line => !/^(?:Description|Documentation)=/.test(line))),
  )
  for (const [user, most] of [
    [undefined, 1.6],
    ['nobody', 2.6],
  ] as const) {
    const path = join(dir.path, 'held.service')
    await Bun.write(path, systemdUnit(settings({ isSystem: true, user })))
    const { out, err } = await run(['systemd-analyze', 'security', '--offline=yes', path], {
      SYSTEMD_PAGER: '',
      LC_ALL: 'C.UTF-8',
    })
    const [, exposure = err] = /Overall exposure level for \S+: ([\d.]+)/.exec(out) ?? []
    expect(Number(exposure)).toBeLessThanOrEqual(most)
  }
})

/** A folder of root, with `app` and a program in it; `prepare` are lines for a shell. Not in the temporary folder, where everybody writes. */
async function machine(prepare: string) {
  const path = mkdtempSync('/srv/localtunnels-')
  const script = `cd "$0" && chmod 755 . && mkdir app bin && touch bin/bun && ${prepare || 'true'}`
  expect(await run(['sh', '-c', script, path])).toMatchObject({ err: '', code: 0 })
  return {
    path,
    account: () => accountOf({ folder: join(path, 'app'), program: [join(path, 'bin/bun')] }),
    [Symbol.dispose]: () => rmSync(path, { recursive: true }),
  }
}

/** Only root can make folders of others. */
const asRoot = isRoot ? test : test.skip

asRoot(
  'a service of root runs as the owner of its folder, and as a user of its own where that is root',
  async () => {
    using own = await machine('')
    expect(own.account()).toBeUndefined()
    expect(systemdUnit(settings({ isSystem: true, kind: 'server' }))).toMatch(
      /\nDynamicUser=yes\n(?:.*\n)*AmbientCapabilities=CAP_NET_BIND_SERVICE\n/,
    )
    using other = await machine('chown nobody app')
    expect(other.account()).toBe('nobody')
    expect(systemdUnit(settings({ isSystem: true, user: 'nobody' }))).toContain('\nUser=nobody\n')
  },
)

asRoot(
  'root is refused a folder in which others may write, and one that the service could not read',
  async () => {
    for (const [prepare, says] of [
      ['chmod 777 app', 'Others may write to .*/app,'],
      ['chmod 1777 .', 'Others may write to .*-\\w+,'],
      ['chgrp nogroup app && chmod 775 app', 'Others may write to .*/app,'],
      ['chown nobody .', 'belongs to another user'],
      ['chown nobody bin/bun', '/bin/bun belongs to another user'],
      ['chmod 757 bin', 'Others may write to .*/bin,'],
      [
        'mkdir real && mv bin/bun real && chmod 777 real && ln -s ../real/bun bin/bun',
        'Others may write to .*/real,',
      ],
      ['chown 54321 app', '/app belongs to user 54321, who is not known here'],
      ['chmod 700 app', 'A service does not run as root, and its user cannot read .*/app:'],
      ['chown nobody app && chmod 700 bin', 'and nobody cannot read .*/bin:'],
    ] as const) {
      using one = await machine(prepare)
      expect(one.account).toThrow(new RegExp(says))
    }
    expect(() => accountOf({ folder: '/root', program: [] })).toThrow('cannot read /root')
    await using manager = await managed()
    const { stderr } = await manager.service('install', '--', '3000')
    expect(stderr).toContain(
      `Others may write to ${tmpdir()}, and could change what the service runs: use another folder.`,
    )
  },
)

test('the list of launchd has the words as they are', () => {
  const text = launchdList(
    'dev.localtunnels.x',
    settings({
      command: ['/bin/echo', 'a & b', '<c>'],
      folder: '/tmp/d',
      user: 'anna',
      variables: { TUNNEL_TOKEN: '<&' },
    }),
  )
  expect(text).toContain('<string>a &amp; b</string>\n    <string>&lt;c&gt;</string>')
  expect(text).toContain('<key>WorkingDirectory</key>\n  <string>/tmp/d</string>')
  expect(text).toContain('<key>UserName</key>\n  <string>anna</string>')
  expect(text).toContain('<key>TUNNEL_TOKEN</key>\n    <string>&lt;&amp;</string>')
})
