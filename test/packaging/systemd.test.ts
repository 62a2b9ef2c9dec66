// The units of systemd, judged by systemd itself.

import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { systemdUnit } from '../../src/cli/service-file.ts'
import { testWith } from '../support/needs.ts'
import { folder } from '../support/programs.ts'

const FOLDER = resolve(import.meta.dir, '../../packaging/systemd')

for (const unit of ['localtunnels-server.service', 'localtunnels.service'])
  testWith(['systemd-analyze'], `${unit} leaves a service little that it could harm`, async () => {
    const child = Bun.spawn(['systemd-analyze', 'security', '--offline=yes', `${FOLDER}/${unit}`], {
      env: { PATH: process.env.PATH, SYSTEMD_PAGER: '', LC_ALL: 'C.UTF-8' },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
    const [, exposure = stderr] = /Overall exposure level for \S+: ([\d.]+)/.exec(stdout) ?? []
    // Of 10; what docs/installing.md says.
    expect(Number(exposure)).toBeLessThanOrEqual(1.6)
  })

test('each service has a state folder of its own: systemd gives it to the one user of that service', async () => {
  const units = ['localtunnels-server', 'localtunnels'].map(name =>
    Bun.file(`${FOLDER}/${name}.service`).text(),
  )
  const generated = systemdUnit({
    name: 'localtunnels',
    kind: 'up',
    command: ['/usr/local/bin/localtunnels', 'up'],
    folder: '/etc/localtunnels',
    isSystem: true,
    user: undefined,
    variables: {},
    variablesPath: '',
  })
  const folders = [...(await Promise.all(units)), generated].map(
    unit => /^StateDirectory=(.*)$/m.exec(unit)?.[1],
  )
  expect(new Set(folders).size).toBe(3)
  expect(folders).not.toContain(undefined)
})

testWith(['systemd-analyze'], 'the socket unit is one that systemd takes', async () => {
  await using dir = await folder('systemd-socket')
  // Beside its service; the program of the service need not be installed here.
  const service = await Bun.file(`${FOLDER}/localtunnels-server.service`).text()
  await Bun.write(
    `${dir.path}/localtunnels-server.service`,
    service.replace('/usr/local/bin/localtunnels', process.execPath),
  )
  await Bun.write(`${dir.path}/localtunnels-server.socket`, Bun.file(`${FOLDER}/localtunnels-server.socket`))
  const child = Bun.spawn(
    ['systemd-analyze', 'verify', '--man=no', `${dir.path}/localtunnels-server.socket`],
    { env: { PATH: process.env.PATH, SYSTEMD_PAGER: '', LC_ALL: 'C.UTF-8' }, stdout: 'pipe', stderr: 'pipe' },
  )
  const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
  expect(stderr).not.toContain('localtunnels-server')
  expect(code).toBe(0)
})
