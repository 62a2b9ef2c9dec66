// The programs in the READMEs of `localtunnel` and `@ngrok/ngrok`, as npm has them, with nothing changed but the name of the package: on
// Node, as CommonJS.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { guarding } from '../../src/plugins/guarding.ts'
import { describeWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { Project } from '../support/project.ts'
import { startServer } from '../support/tunnel.ts'

let project: Project
beforeAll(async () => {
  project = await Project.install('readmes', ['./compat'])
}, 240_000)
afterAll(() => project?.[Symbol.asyncDispose](), 60_000)

async function programsOf(name: string): Promise<string[]> {
  const text = await Bun.file(join(project.folder, 'node_modules', name, 'README.md')).text()
  const programs = [...text.matchAll(/^( *)```jsx?\n([\s\S]*?)^ *```$/gm)]
  return programs.map(([, , code = '']) =>
    code.replace(/require\((['"])(?:localtunnel|@ngrok\/ngrok)\1\)/g, "require('localtunnels/compat')"),
  )
}

const startGuarded = () =>
  startServer({ tokens: ['secret'], tcpPorts: `25565, ${freePort()}`, guarding: guarding() })
const SECRETS = { TUNNEL_TOKEN: 'secret' }

/** What the pieces of the README that are no whole programs stand in; they say what came of them. */
const AROUND = `const ngrok = require('localtunnels/compat')
const fs = { readFileSync: () => 'PEM' }
const token = 'secret', UNIX_SOCKET = '/run/app.sock'
const said = []
console.log = (...words) => said.push(words.join(' '))
async function tell(code, program) {
  said.length = 0
  try {
    const given = await ngrok.forward(9)
    await program(given, given.url())
    // Of programs that begin something without waiting.
    for (let turn = 0; said.length === 0 && turn < 100 && code.includes('console.log'); turn++)
      await new Promise(done => setTimeout(done, 20))
    const open = await ngrok.listeners()
    process.stdout.write(JSON.stringify({ open: open.filter(one => one !== given).map(one => one.proto() + ' ' + one.forwardsTo()), isGiven: open.includes(given), said }) + '\\n')
  } catch (error) {
    process.stdout.write(JSON.stringify({ code: error.code, message: error.message }) + '\\n')
  }
  await ngrok.disconnect()
}
`

/** A line that names what it makes as the one before does is a program of its own. */
function piecesOf(program: string): string[] {
  const lines = program.trim().split('\n')
  const isList = lines.length > 1 && lines.every(line => line.startsWith('const listener = '))
  return (isList ? lines : [program])
    .map(piece => piece.replace(', ... }', ' }'))
    .map(piece => (piece.includes('function create_listener') ? `${piece}\nawait create_listener()` : piece))
}

describeWith(['node'], 'READMEs', () => {
  test('localtunnel: its program', async () => {
    const [program = '', ...others] = await programsOf('localtunnel')
    expect(others).toEqual([])
    await using server = await startServer()
    const shown = program.replace('tunnel.url;', 'console.log(tunnel.url)')
    const closed = shown.replace(
      /\/\/ tunnels are closed\s*\}\);/,
      `console.log('closed') })\ntunnel.close()`,
    )
    await project.write({ 'localtunnel.cjs': closed })
    await using running = project.start(['localtunnel.cjs'], { TUNNEL_SERVER: server.url })
    expect(await running.exited).toBe(0)
    expect(running.stdout).toMatch(/^http:\/\/[a-z-]+\.localhost:\d+\nclosed\n$/)
  }, 60_000)

  test('@ngrok/ngrok: the program of its quickstart', async () => {
    const [program = ''] = await programsOf('@ngrok/ngrok')
    await using server = await startGuarded()
    await project.write({ 'quickstart.cjs': program })
    await using running = project.start(['quickstart.cjs'], { TUNNEL_SERVER: server.url, ...SECRETS })
    await running.printed(/Ingress established at: http:\/\/[a-z-]+\.localhost:\d+\n/)
    await running.end()
  }, 60_000)

  test('@ngrok/ngrok: all others, and what is refused by name', async () => {
    const [, ...programs] = await programsOf('@ngrok/ngrok')
    await using server = await startGuarded()
    const pieces = programs.flatMap(piecesOf)
    const calls = pieces.map(
      piece => `await tell(${JSON.stringify(piece)}, async (listener, url) => {{\n${piece}\n}})`,
    )
    await project.write({
      'pieces.cjs': `${AROUND}\nvoid (async () => {\n${calls.join('\n')}\nprocess.exit(0)\n})()`,
    })
    await using running = project.start(['pieces.cjs'], { TUNNEL_SERVER: server.url, ...SECRETS })
    expect([await running.exited, running.stderr]).toEqual([0, ''])
    const outcomes = running.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    const of = (part: string) => outcomes[pieces.findIndex(piece => piece.includes(part))]
    const one = (to: string) => ({ open: [`http ${to}`], isGiven: true, said: [] })
    for (const [part, to] of [
      ['authtoken_from_env: true }', '80'],
      ['authtoken: token', '80'],
      ['forward(4242)', '4242'],
      ['forward("localhost:4242")', 'localhost:4242'],
      ['basic_auth: "ngrok:online1line" }', '8080'],
      ['addr: "https://127.0.0.1:3000"', 'https://127.0.0.1:3000'],
    ] as const)
      expect([part, of(part)]).toEqual([part, one(to)])
    const url = expect.stringMatching(/http:\/\/[a-z-]+\.localhost:\d+$/)
    expect(of('(await ngrok.forward()).url()')).toEqual({ ...one('80'), said: [url] })
    expect(of('function create_listener')).toEqual({ ...one('localhost:8081'), said: [url] })
    expect(of("proto: 'tcp'")).toEqual({ ...one(''), open: ['tcp 25565'] })
    expect(of('ngrok.authtoken(token)')).toEqual({ ...one(''), open: [] })
    expect(of('ngrok.listeners()')).toEqual({ ...one(''), open: [] })
    for (const part of ['getListenerByUrl(url)', 'disconnect(listener.url())', 'ngrok.disconnect();'])
      expect([part, of(part)]).toEqual([part, { open: [], isGiven: false, said: [] }])
    expect(of('.catch(err =>')).toMatchObject({ isGiven: true, said: [] })
    // This server has no login; one whose operator has listed Google takes it.
    expect(of('oauth_provider: "google", oauth_allow')).toMatchObject({ code: 'GUARD_UNAVAILABLE' })
    // All options at once: those that it does not have are named.
    expect(of('circuit_breaker')).toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringContaining('circuit_breaker'),
    })
    expect(outcomes.length).toBe(17)
  }, 60_000)
})
