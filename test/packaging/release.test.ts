// What is made from a release, and what uses one: manifests of Homebrew and Scoop, the action of GitHub, DDEV's provider, the workflow.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { VERSION } from '../../src/version.ts'
import { run } from '../support/programs.ts'

const ROOT = resolve(import.meta.dir, '../..')
const PROGRAM = join(ROOT, 'bin/localtunnels.ts')
const RELEASE = 'https://github.com/me/localtunnels/releases/download/v1'
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-release-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const PLATFORMS = ['linux-x64', 'linux-arm64', 'macos-x64', 'macos-arm64', 'windows-x64.exe']

async function manifests(platforms: readonly string[], url = RELEASE) {
  const sums = platforms.map((one, at) => `${String(at + 1).repeat(64)}  localtunnels-${one}\n`)
  await writeFile(join(folder, 'SHA256SUMS'), sums.join(''))
  return run(['bun', join(ROOT, 'tools/manifests.ts'), '--url', url, '--from', folder, '--to', folder])
}

test('the manifests name each file with its checksum', async () => {
  expect(await manifests(PLATFORMS)).toMatchObject({ code: 0 })
  const formula = await Bun.file(join(folder, 'localtunnels.rb')).text()
  for (const [at, platform] of PLATFORMS.slice(0, 4).entries())
    expect(formula).toContain(
      `url "${RELEASE}/localtunnels-${platform}"\n      sha256 "${String(at + 1).repeat(64)}"`,
    )
  expect(formula).toContain('homepage "https://github.com/me/localtunnels"')
  expect(formula.match(/\bdo\b|\bdef\b|\bclass\b/g)?.length).toBe(formula.match(/\bend\b/g)?.length)
  expect(await Bun.file(join(folder, 'localtunnels.json')).json()).toMatchObject({
    version: VERSION,
    architecture: {
      '64bit': { url: `${RELEASE}/localtunnels-windows-x64.exe#/localtunnels.exe`, hash: '5'.repeat(64) },
    },
  })
})

test('an address that is none is written into no package.json', async () => {
  for (const url of ['', 'http://github.com/me/x', 'https://github.com/me', 'https://github.com/me/x"'])
    expect(await run(['bun', join(ROOT, 'tools/repository.ts'), url])).toMatchObject({ code: 2 })
})

test('a release without one of the files, and an address that is none, make no manifest', async () => {
  const short = await manifests(PLATFORMS.slice(0, 3))
  expect(short).toMatchObject({ code: 2, err: 'error: SHA256SUMS does not name localtunnels-macos-arm64.\n' })
  expect((await manifests(PLATFORMS, 'http://x"; system("y")')).code).toBe(2)
})

/** The script of the action, as GitHub runs it, in the folder of the project. */
async function act(inputs: Record<string, string>, project = folder) {
  const [output, summary] = [join(folder, 'output'), join(folder, 'summary')]
  await Promise.all([writeFile(output, ''), writeFile(summary, '')])
  const variables = { GITHUB_OUTPUT: output, GITHUB_STEP_SUMMARY: summary, XDG_STATE_HOME: folder }
  const command = ['sh', '-c', 'cd "$0" && exec bash "$1"', project, join(ROOT, 'packaging/action/start.sh')]
  const ran = await run(command, {
    LT_COMMAND: `bun ${PROGRAM}`,
    ...variables,
    ...inputs,
  })
  return { ...ran, output: await Bun.file(output).text(), summary: await Bun.file(summary).text() }
}

test('the action gives a URL that leads to the app until the job is over', async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  const { code, output, summary, out, err } = await act({ LT_TARGET: `${app.port}`, LT_ARGS: '--ttl 1m' })
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const url = /^url=(\S+)\npid=\d+\n$/.exec(output)?.[1] ?? ''
  expect(out).toBe(`${url}\n`)
  expect(summary).toBe(`### ${url}\n`)
  const { hostname, port } = new URL(url)
  const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { Host: `${hostname}:${port}` } })
  expect(await answer.text()).toBe('hello')
  process.kill(Number(/pid=(\d+)/.exec(output)?.[1]), 'SIGINT')
})

test('the action says why there is no URL', async () => {
  const refused = await act({ LT_TARGET: 'no port' })
  expect(refused.code).toBe(1)
  expect(refused.out).toContain('::error title=localtunnels::It ended: ')
  expect(refused.out).toContain('OPTION_INVALID')
  const both = await act({ LT_TARGET: '1', LT_AUDIENCE: 'a', LT_TOKEN: 'b' })
  expect(both.out).toBe('::error title=localtunnels::Give token or audience, not both.\n')
  const noRight = await act({ LT_TARGET: '1', LT_AUDIENCE: 'a' })
  expect(noRight.out).toContain('id-token: write')
})

test('the action runs the code of its own tag, whatever is in the project, and takes * as it is', async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  const project = join(folder, 'project')
  const evil = `#!/bin/sh\ntouch ${join(folder, 'evil')}\necho http://evil.example\n`
  await Bun.write(join(project, 'node_modules/.bin/localtunnels'), evil)
  await run(['chmod', '+x', join(project, 'node_modules/.bin/localtunnels')])
  await Bun.write(join(project, '.npmrc'), 'registry=http://127.0.0.1:9/\n')
  await Bun.write(
    join(project, 'bunfig.toml'),
    'preload = ["./evil.ts"]\n[install]\nregistry = "http://127.0.0.1:9/"\n',
  )
  await Bun.write(join(project, 'evil.ts'), `await Bun.write(${JSON.stringify(join(folder, 'evil'))}, '')`)
  await Bun.write(join(project, '--version'), '')
  const inputs = { LT_COMMAND: '', RUNNER_TEMP: folder, LT_TARGET: `${app.port}` }
  const { out, err, output } = await act(inputs, project)
  expect({ out, err }).toEqual({ out: expect.stringMatching(/^http:\/\/[\w-]+\.localhost:\d+\n$/), err: '' })
  const pid = Number(/pid=(\d+)/.exec(output)?.[1])
  expect(await run(['ps', '-o', 'args=', '-p', `${pid}`])).toMatchObject({
    out: expect.stringMatching(new RegExp(`${folder}/localtunnels-\\w+/bin/localtunnels\\.ts`)),
  })
  process.kill(pid, 'SIGINT')
  expect(await Bun.file(join(folder, 'evil')).exists()).toBe(false)
  const refused = await act({ LT_TARGET: '1', LT_ARGS: '*' }, project)
  expect(refused.out).toContain('OPTION_INVALID')
  expect(refused.out).not.toContain('bunfig')
})

test('inputs of the action are no part of its script', async () => {
  const text = await Bun.file(join(ROOT, 'packaging/action/action.yml')).text()
  const action = Bun.YAML.parse(text) as {
    inputs: Record<string, unknown>
    runs: { steps: { run: string; env: Record<string, string> }[] }
  }
  const [step] = action.runs.steps
  expect(step?.run).not.toContain('${{')
  const given = Object.values(step?.env ?? {}).map(value => /inputs\.(\w+)/.exec(value)?.[1])
  expect(new Set(given)).toEqual(new Set(Object.keys(action.inputs)))
})

test("DDEV's provider prints the URL first, and ends with its tunnel", async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  const bin = join(folder, 'bin')
  await Bun.write(join(bin, 'localtunnels'), `#!/bin/sh\nexec bun ${PROGRAM} "$@"\n`)
  await run(['chmod', '+x', join(bin, 'localtunnels')])
  const child = Bun.spawn(['bash', join(ROOT, 'packaging/ddev/localtunnels.sh')], {
    env: {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      XDG_STATE_HOME: folder,
      DDEV_LOCAL_URL: `http://127.0.0.1:${app.port}`,
      DDEV_SHARE_ARGS: '--ttl 1m',
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const { value } = await child.stdout.getReader().read()
  expect(Buffer.from(value ?? []).toString()).toMatch(/^http:\/\/\S+\n$/)
  child.kill('SIGINT')
  expect(await child.exited).toBe(0)
})

test('the workflow of a release gives each job the rights that it needs, and stores no secret', async () => {
  const text = await Bun.file(join(ROOT, '.github/workflows/release.yml')).text()
  const workflow = Bun.YAML.parse(text) as {
    permissions: object
    jobs: Record<string, { permissions: object; needs?: string }>
  }
  expect(workflow.permissions).toEqual({})
  for (const job of Object.values(workflow.jobs)) expect(job.permissions).toBeDefined()
  expect(workflow.jobs.files?.needs).toBe('check')
  expect(text).not.toContain('secrets.')
})
