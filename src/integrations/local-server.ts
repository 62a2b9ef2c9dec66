// A server on this machine for one tunnel: in this process on Bun, in a process with Bun on Node.

import type { TunnelClientOptions } from '../client/options.ts'
import { TunnelError } from '../errors.ts'

/**
 * The domain 0.0.1: the tunnel 127 below it has the host 127.0.0.1, whose URL works everywhere. Browsers and Bun know
 * `*.localhost`, but not every system does, and so neither does Node.
 */
const DOMAIN = '0.0.1'
const NAME = '127'
const SERVER_OPTIONS = {
  port: 0,
  host: '127.0.0.1',
  domains: [DOMAIN],
  limits: { drainTimeoutMs: 0, startupHoldMs: 0, leaseMs: 0 },
} as const

export interface LocalServer {
  /** The options of the client. */
  readonly options: Pick<TunnelClientOptions, 'server' | 'subdomain' | 'exact' | 'proxy' | 'token'>
  stop(): Promise<void>
}

/** Starts the server. Rejects with `RUNTIME_UNSUPPORTED` without Bun. */
export async function startLocalServer(): Promise<LocalServer> {
  if (!('Bun' in globalThis)) return await startProcess()
  const { TunnelServer } = await import('../tunnel-server.ts')
  const server = new TunnelServer(SERVER_OPTIONS)
  await server.start()
  return { options: optionsFor(server.port), stop: () => server.stop() }
}

function optionsFor(port: number): LocalServer['options'] {
  // The address itself belongs to the tunnel, so clients use the control host.
  return { server: `http://localhost:${port}`, subdomain: NAME, exact: true, proxy: false, token: '' }
}

/** Starts a process, which ends with this one in any case, because its standard input is then closed. */
async function startProcess(): Promise<LocalServer> {
  const { spawn } = await import('node:child_process')
  const { tmpdir } = await import('node:os')
  const isSource = import.meta.url.endsWith('.ts')
  const server = new URL(`../index.${isSource ? 'ts' : 'js'}`, import.meta.url).href
  // `console.log` colours a number if FORCE_COLOR is set, as Playwright and many CI systems do.
  const program = `
    const { TunnelServer } = await import(${JSON.stringify(server)})
    const server = new TunnelServer(${JSON.stringify(SERVER_OPTIONS)})
    process.stdin.on('end', () => process.exit()).resume()
    await server.start()
    process.stdout.write(String(server.port))
  `
  // Runs in a folder without configuration for Bun, because a project's is not for this program.
  const child = spawn('bun', ['--no-env-file', '--config=/dev/null', '-e', program], {
    cwd: tmpdir(),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = new Promise<void>(resolve => {
    child.once('exit', () => resolve())
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('error', cause => {
      const text =
        'Without `server` a tunnel server runs on this machine, which needs Bun: there is none on PATH.'
      reject(new TunnelError('RUNTIME_UNSUPPORTED', text, { cause }))
    })
    child.once('exit', code =>
      reject(new TunnelError('INTERNAL', `The server of the test ended at once (${code}).`)),
    )
    child.stdout.once('data', bytes => resolve(Number(bytes)))
  })
  // A test runner that forgets to close it can still end.
  child.unref()
  for (const pipe of [child.stdin, child.stdout])
    if ('unref' in pipe && typeof pipe.unref === 'function') pipe.unref()
  return {
    options: optionsFor(port),
    async stop() {
      child.stdin.end()
      await exited
    },
  }
}
