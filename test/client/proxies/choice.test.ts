// Which proxy leads where: the option, the environment, NO_PROXY.

import { describe, expect, test } from 'bun:test'
import { parseProxy, proxyChooser } from '../../../src/client/carriers/proxy.ts'
import { parseServer } from '../../../src/client/carriers/server-address.ts'
import { TunnelClient } from '../../../src/index.ts'

type Environment = Readonly<Record<string, string>>

/** The proxy that leads to a server, `straight` for none. */
const wayTo = (server: string, environment: Environment, proxy?: string | false) =>
  proxyChooser({ proxy }, environment)(parseServer(server).address)?.label ?? 'straight'

const thrownBy = (call: () => unknown): string => {
  try {
    call()
  } catch (error) {
    return `${error instanceof Error && 'code' in error ? String(error.code) : ''}: ${String(error)}`
  }
  return 'nothing'
}

describe('the environment', () => {
  test.each<[string, Environment, string]>([
    ['wss://t.example', {}, 'straight'],
    ['wss://t.example', { HTTPS_PROXY: 'http://p:1' }, 'http://p:1'],
    ['https://t.example', { https_proxy: 'http://p:1', HTTPS_PROXY: 'http://q:2' }, 'http://p:1'],
    ['wss://t.example', { HTTP_PROXY: 'http://p:1' }, 'straight'],
    ['ws://t.example', { HTTP_PROXY: 'http://p:1' }, 'http://p:1'],
    ['http://t.example', { http_proxy: 'http://p:1' }, 'http://p:1'],
    ['ws://t.example', { HTTPS_PROXY: 'http://p:1' }, 'straight'],
    ['ws://t.example', { ALL_PROXY: 'socks5://p' }, 'socks5://p:1080'],
    ['wss://t.example', { all_proxy: 'socks5h://p' }, 'socks5h://p:1080'],
    ['wss://t.example', { ALL_PROXY: 'socks5://p', HTTPS_PROXY: 'http://q:2' }, 'http://q:2'],
    ['wss://t.example', { HTTPS_PROXY: '', ALL_PROXY: 'http://p:1' }, 'http://p:1'],
    ['wss://t.example', { HTTPS_PROXY: 'p:3128' }, 'http://p:3128'],
    ['wss://t.example', { HTTPS_PROXY: 'http://p' }, 'http://p:80'],
    ['wss://t.example', { HTTPS_PROXY: 'https://p' }, 'https://p:443'],
    ['wss://t.example', { HTTPS_PROXY: 'http://[::1]:9' }, 'http://[::1]:9'],
    // A CGI script would believe a stranger's header.
    ['ws://t.example', { HTTP_PROXY: 'http://p:1', REQUEST_METHOD: 'GET' }, 'straight'],
    ['ws://t.example', { http_proxy: 'http://p:1', REQUEST_METHOD: 'GET' }, 'http://p:1'],
  ])('to %s with %j: %s', (server, environment, label) => {
    expect(wayTo(server, environment)).toBe(label)
  })

  test('is not asked when the option says where, or nowhere', () => {
    const environment = { HTTPS_PROXY: 'http://p:1', NO_PROXY: '*' }
    expect(wayTo('wss://t.example', environment, 'socks5://q')).toBe('socks5://q:1080')
    expect(wayTo('ws://127.0.0.1', environment, 'socks5://q')).toBe('socks5://q:1080')
    expect(wayTo('wss://t.example', { HTTPS_PROXY: 'http://p:1' }, false)).toBe('straight')
    expect(wayTo('wss://t.example', { HTTPS_PROXY: 'http://p:1' }, '')).toBe('straight')
  })
})

describe('NO_PROXY', () => {
  const isBypassed = (list: string, server: string) =>
    wayTo(server, { HTTP_PROXY: 'http://p:1', NO_PROXY: list }) === 'straight'

  test.each([
    ['t.example', 't.example'],
    ['T.Example', 't.eXample'],
    ['a.b, t.example', 't.example'],
    ['a.b t.example', 't.example'],
    ['.example', 't.example'],
    ['*.example', 'a.t.example'],
    ['t.example.', 't.example'],
    ['t.example', 't.example.'],
    ['t.example:8080', 't.example:8080'],
    ['.example:80', 't.example'],
    ['*', 't.example'],
    ['10.1.2.3', '10.1.2.3'],
    ['10.0.0.0/8', '10.1.2.3'],
    ['10.1.2.3:8080', '10.1.2.3:8080'],
    ['2001:db8::/32', '[2001:db8:1::2]'],
    ['2001:DB8::1', '[2001:db8:0::1]'],
    ['[2001:db8::1]', '[2001:db8::1]'],
    ['[2001:db8::1]:8080', '[2001:db8::1]:8080'],
    // This machine, whatever the list says.
    ['', 'localhost:8080'],
    ['', 'tunnel.localhost'],
    ['', '127.0.0.1'],
    ['', '127.9.9.9:1'],
    ['', '[::1]:8080'],
  ])('"%s" leads straight to %s', (list, host) => {
    expect(isBypassed(list, `http://${host}`)).toBe(true)
  })

  test.each([
    ['t.example', 'a.t.example'],
    ['.t.example', 't.example'],
    ['*.t.example', 't.example'],
    ['example', 't.example'],
    ['ample', 't.example'],
    ['.ample', 't.example'],
    ['t.example:8080', 't.example'],
    ['10.0.0.0/8', '11.0.0.1'],
    // A network has addresses of its own family only.
    ['::/0', '10.1.2.3'],
    ['0.0.0.0/0', '[2001:db8::1]'],
    ['10.1.2.3:81', '10.1.2.3'],
    ['10.0.0.0/33', '10.1.2.3'],
    ['10.0.0.0/8/8', '10.1.2.3'],
    ['10.0.0.0/', '10.1.2.3'],
    ['2001:db8::/32', '[2001:db9::1]'],
    [',,  ,', 't.example'],
    [':80', 't.example'],
    ['.', 't.example'],
  ])('"%s" does not lead straight to %s', (list, host) => {
    expect(isBypassed(list, `http://${host}`)).toBe(false)
  })

  test('in lower case wins', () => {
    const environment = { HTTP_PROXY: 'http://p:1', NO_PROXY: '*', no_proxy: 'other' }
    expect(wayTo('ws://t.example', environment)).toBe('http://p:1')
  })
})

describe('the URL of a proxy', () => {
  test('has user and password percent-decoded', () => {
    const { login, label } = parseProxy('http://us%40er:p%3Aa%2Fs%25%C3%B6@p:1', 'proxy')
    expect(login).toEqual({ user: 'us@er', password: 'p:a/s%ö' })
    expect(label).toBe('http://p:1')
    expect(parseProxy('http://token@p:1', 'proxy').login).toEqual({ user: 'token', password: '' })
  })

  test.each([
    ['socks4://secret:secret@p', /^OPTION_INVALID: .*HTTPS_PROXY names a socks4:\/\/ proxy; known are http/],
    ['http://', /^OPTION_INVALID: .*HTTPS_PROXY is not the URL of a proxy/],
    ['http://secret:sec/ret@p:1', /^OPTION_INVALID: .*%40/],
    ['http://secret:%zz@p:1', /^OPTION_INVALID: .*%25/],
    ['http://se%3Acret:x@p:1', /^OPTION_INVALID: .*colon/],
    [`socks5://secret:${'x'.repeat(256)}@p`, /^OPTION_INVALID: .*1 to 255 bytes/],
    ['socks5://:secret@p', /^OPTION_INVALID: .*1 to 255 bytes/],
  ])('%s is refused in one line that does not quote it', (url, says) => {
    const thrown = thrownBy(() => parseProxy(url, 'HTTPS_PROXY'))
    expect(thrown).toMatch(says)
    expect(thrown).not.toMatch(/secret|\n/)
  })

  test('is checked when the client is made', () => {
    expect(thrownBy(() => new TunnelClient({ port: 1, proxy: 'ftp://p' }))).toMatch(
      /^OPTION_INVALID: .*proxy names a ftp/,
    )
    expect(thrownBy(() => new TunnelClient({ port: 1, proxy: 'http://p', agent: {} }))).toMatch(
      /^OPTION_INVALID: .*agent and proxy/,
    )
  })
})
