// What the real bin answers to what cannot work: one line, a documented exit code, never a stack trace.

import { describe, expect, test } from 'bun:test'
import { finish } from './bin.ts'

interface Case {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly code: string
  readonly says: string
  readonly exitCode: number
}

const CASES: readonly Case[] = [
  {
    args: ['--port', '300000'],
    code: 'OPTION_INVALID',
    says: ': --port "300000": a port is a number from 1 to 65535.',
    exitCode: 2,
  },
  { args: ['99999'], code: 'OPTION_INVALID', says: ': "99999": a port is a number from 1', exitCode: 2 },
  { args: ['app:99999'], code: 'OPTION_INVALID', says: ': "99999": a port is a number from 1', exitCode: 2 },
  {
    args: ['server', '--port', '-1'],
    code: 'OPTION_INVALID',
    says: '"-1": a port is a number from 0',
    exitCode: 2,
  },
  { args: [], env: { TUNNEL_PORT: 'abc' }, code: 'OPTION_INVALID', says: 'TUNNEL_PORT "abc"', exitCode: 2 },
  {
    args: ['3000', '--subdomain', 'my_app'],
    code: 'NAME_INVALID',
    says: '--subdomain "my_app"',
    exitCode: 2,
  },
  { args: ['3000', '--wire', 'carrier-pigeon'], code: 'OPTION_INVALID', says: 'carrier-pigeon', exitCode: 2 },
  { args: ['3000', '--prot', '1'], code: 'OPTION_INVALID', says: 'Did you mean --port?', exitCode: 2 },
  {
    args: ['sever'],
    code: 'OPTION_INVALID',
    says: 'nor a command. Did you mean server?',
    exitCode: 2,
  },
  { args: ['tcp'], code: 'OPTION_INVALID', says: "Missing required argument 'port'", exitCode: 2 },
  { args: ['tcp', '0'], code: 'OPTION_INVALID', says: ': "0": a port is a number from 1', exitCode: 2 },
  {
    args: ['tcp', 'http://localhost:80'],
    code: 'OPTION_INVALID',
    says: 'neither a port, a host',
    exitCode: 2,
  },
  {
    args: ['tcp', '22', '--remote-port', '0'],
    code: 'OPTION_INVALID',
    says: '--remote-port "0"',
    exitCode: 2,
  },
  {
    args: ['tcp', '22', '--proxy-protocol', 'v3'],
    code: 'OPTION_INVALID',
    says: '--proxy-protocol "v3" is neither v1 nor v2',
    exitCode: 2,
  },
  {
    args: ['server', '--tcp-ports', '9-1'],
    code: 'OPTION_INVALID',
    says: '"9-1" is neither a port from 1 to 65535 nor a range',
    exitCode: 2,
  },
  { args: ['3000', '--port', '3001'], code: 'OPTION_INVALID', says: 'given twice', exitCode: 2 },
  { args: ['--serve', 'x', '--port', '3000'], code: 'OPTION_INVALID', says: 'given twice', exitCode: 2 },
  {
    args: ['--serve', 'x', '3000'],
    code: 'OPTION_INVALID',
    says: 'given twice: 3000 and --serve x',
    exitCode: 2,
  },
  {
    args: [],
    env: { TUNNEL_SERVE: 'x', TUNNEL_PORT: '3000' },
    code: 'OPTION_INVALID',
    says: 'TUNNEL_PORT 3000 and TUNNEL_SERVE x',
    exitCode: 2,
  },
  {
    args: ['--serve', 'nowhere'],
    code: 'OPTION_INVALID',
    says: '"nowhere": there is no such folder',
    exitCode: 2,
  },
  { args: ['--serve', 'README.md'], code: 'OPTION_INVALID', says: 'it is not a folder', exitCode: 2 },
  {
    args: ['--serve', 'nowhere'],
    // A flag wins over the variable of another way to say it.
    env: { TUNNEL_PORT: '3000' },
    code: 'OPTION_INVALID',
    says: 'there is no such folder',
    exitCode: 2,
  },
  { args: ['3000', '--spa'], code: 'OPTION_INVALID', says: '--spa belongs to --serve', exitCode: 2 },
  { args: ['./dist'], code: 'OPTION_INVALID', says: 'is served with --serve ./dist', exitCode: 2 },
  {
    args: ['server', '--tls-cert', 'missing.pem', '--tls-key', 'x.pem'],
    code: 'TLS_INVALID',
    says: 'cannot be read: there is no such file.',
    exitCode: 2,
  },
  { args: ['server', '--tls-cert', 'x.pem'], code: 'TLS_INVALID', says: 'belong together', exitCode: 2 },
  {
    args: ['server', '--origin-timeout', 'soon'],
    code: 'OPTION_INVALID',
    says: '"soon" is not a time',
    exitCode: 2,
  },
  { args: ['server', 'more'], code: 'OPTION_INVALID', says: 'Too many arguments', exitCode: 2 },
]

describe('bad input', () => {
  test.concurrent.each(CASES)('$args $env is $code', async ({ args, env, code, says, exitCode }) => {
    const result = await finish(args, env)
    expect(result.stderr).toStartWith(`error ${code}: `)
    expect(result.stderr).toContain(says)
    expect(result.stderr.trimEnd()).not.toContain('\n')
    expect(result.stdout).toBe('')
    expect(result.exitCode).toBe(exitCode)
  })
})

test('LOCALTUNNELS_DEBUG=1 adds the stack trace', async () => {
  const { stderr } = await finish(['--port', '99999'], { LOCALTUNNELS_DEBUG: '1' })
  expect(stderr).toContain('flags.ts')
})

test('an empty variable and a flag variable that says no count as not set', async () => {
  const env = { TUNNEL_PORT: '', TUNNEL_JSON: '0', TUNNEL_SUBDOMAIN: '_' }
  const { stderr, stdout } = await finish([], env)
  expect(stderr).toStartWith('error NAME_INVALID: TUNNEL_SUBDOMAIN')
  expect(stdout).toBe('')
})

test('--version prints the version alone, --help ends well', async () => {
  const { version } = (await import('../../package.json')).default
  expect(await finish(['--version'])).toEqual({ stdout: `${version}\n`, stderr: '', exitCode: 0 })
  const help = await finish(['server', '--help'])
  expect(help.exitCode).toBe(0)
  expect(help.stdout).toContain('TUNNEL_SERVER_TLS_CERT')
})
