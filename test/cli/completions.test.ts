// Completions, asked of the shells themselves.

import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { testWith } from '../support/needs.ts'

const root = resolve(import.meta.dir, '../..')
const folder = mkdtempSync(join(tmpdir(), 'localtunnels-completions-'))
afterAll(() => rmSync(folder, { recursive: true }))

interface Outcome {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

async function run(...cmd: readonly string[]): Promise<Outcome> {
  const child = Bun.spawn({ cmd: [...cmd], cwd: root, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { exitCode: await child.exited, stdout, stderr }
}

/** A file with what the command prints for a shell. */
async function completions(shell: string): Promise<string> {
  const { stdout, exitCode } = await run('bun', 'bin/localtunnels.ts', 'completions', shell)
  expect(exitCode).toBe(0)
  const file = join(folder, `completions.${shell}`)
  await Bun.write(file, stdout)
  return file
}

/** What is typed, and what the shell offers for the last word. */
const TYPED: readonly (readonly [string, readonly string[]])[] = [
  ['localtunnels serve', ['server']],
  ['localtunnels server --acme-d', ['--acme-directory', '--acme-dns']],
  ['localtunnels config ', ['check', 'schema']],
  ['localtunnels config sch', ['schema']],
  ['lt 3000 --subd', ['--subdomain']],
  ['lt --ca LICEN', ['LICENSE']],
  ['lt --subdomain LICEN', []],
]

const quoted = (text: string): string => `'${text}'`

/** As bash calls a function for completions: its manual, "Programmable Completion". */
async function askBash(file: string, typed: string): Promise<readonly string[]> {
  const words = typed.split(' ')
  const asked = `source ${file}; COMP_WORDS=(${words.map(quoted).join(' ')}); COMP_CWORD=${words.length - 1}
    _localtunnels; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = await run('bash', '--norc', '-c', asked)
  expect(stderr).toBe('')
  return stdout.split('\n').filter(line => line !== '')
}

async function askFish(file: string, typed: string): Promise<readonly string[]> {
  const { stdout, stderr } = await run('fish', '--no-config', '-c', `source ${file}; complete -C '${typed}'`)
  expect(stderr).toBe('')
  return stdout
    .split('\n')
    .map(line => line.split('\t')[0] ?? '')
    .filter(word => word !== '')
}

for (const [shell, ask] of [
  ['bash', askBash],
  ['fish', askFish],
] as const)
  testWith([shell], `${shell} completes commands, flags and files`, async () => {
    const file = await completions(shell)
    for (const [typed, offered] of TYPED)
      expect({ typed, offered: await ask(file, typed) }).toEqual({ typed, offered })
  })

testWith(['zsh'], 'zsh completes commands and flags', async () => {
  const file = await completions('zsh')
  // The shell completes in its line editor only: a terminal of its own, as its module zpty makes one.
  const asked = `zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell "PS1= ; autoload -U compinit; compinit -D -u; source ${file}; print READY"
    zpty -r shell line '*READY*READY*'
    zpty -w -n shell $'localtunnels server --acme-d\\t\\t'
    zpty -r shell line '*proved by DNS*'; print -r -- $line
    zpty -d shell`
  const { stdout } = await run('zsh', '-f', '-c', asked)
  expect(stdout).not.toContain('bad option')
  expect(stdout).toContain('--acme-directory')
  expect(stdout).toContain('one certificate for all names')
})

test('another shell is refused with those that there are', async () => {
  const { exitCode, stderr } = await run('bun', 'bin/localtunnels.ts', 'completions', 'tcsh')
  expect(exitCode).toBe(2)
  expect(stderr).toContain('bash, zsh, fish')
})
