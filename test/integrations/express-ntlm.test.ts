// express-ntlm, as its README has it, behind a tunnel: users log in with curl, strangers ask in between.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { ask } from '../support/ask.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { Project } from '../support/project.ts'
import { startTunnel } from '../support/tunnel.ts'

const APP = `import express from 'express'
import ntlm from 'express-ntlm'
const app = express()
app.use(ntlm({ domain: 'CORP' }))
app.use((request, response) => response.end('hello ' + request.ntlm.UserName))
const server = app.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port + '.'))
`
const USERS = 10
const INSTALL_MS = 120_000

let project: Project
let app: ReturnType<Project['start']>
let port: number

beforeAll(async () => {
  project = await Project.install('express-ntlm')
  await project.write({ 'app.mjs': APP })
  app = project.start(['app.mjs'])
  port = Number(/port (\d+)\./.exec(await app.printed(/port \d+\./))?.[1])
}, INSTALL_MS)

afterAll(async () => {
  await app?.end()
  await project?.[Symbol.asyncDispose]()
})

async function curl(url: string, host: string, ...more: string[]): Promise<string> {
  const words = ['curl', '-sk', '-m', '15', '-H', `Host: ${host}`, '-w', ' %{http_code}', ...more, url]
  return new Response(Bun.spawn(words, { stderr: 'inherit' }).stdout).text()
}

const login = (user: string) => ['--ntlm', '-u', `CORP\\${user}:pw`]

describe.each(['streams', 'json'] as const)('on the %s wire', wire => {
  test('each user is known by the own name, and strangers by none', async () => {
    await using tunnel = await startTunnel({ port }, { wire })
    const url = `http://127.0.0.1:${tunnel.port}/`
    const users = Array.from({ length: USERS }, (_, index) =>
      curl(url, tunnel.host, ...login(`user${index}`)),
    )
    const strangers = Array.from({ length: 60 }, () => ask(tunnel.port, tunnel.host))
    expect(new Set((await Promise.all(strangers)).map(({ status }) => status))).toEqual(new Set([401]))
    const known = Array.from({ length: USERS }, (_, index) => `hello user${index} 200`)
    expect(await Promise.all(users)).toEqual(known)
    expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 401 })
  })
})

test('a user whose program prefers HTTP/2 is known, too', async () => {
  await using site = await startHttp2Site(port)
  const url = `https://${site.host}/`
  expect(await curl(url, site.host, '--http2', ...login('alice'))).toBe('hello alice 200')
  expect(await curl(url, site.host, '--http2')).toEndWith(' 401')
})
