// The units of systemd, judged by systemd itself.

import { expect } from 'bun:test'
import { resolve } from 'node:path'
import { testWith } from '../support/needs.ts'

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
