// The apps behind the tunnels, by name, each in a process of its own.

import { join } from 'node:path'
import { type Child, finish, type Launched, type LaunchOptions, launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { reasonOf } from '../measure/samples.ts'
import { peersFolder, type Scratch, scratch } from '../peers/binary.ts'
import { certificate } from '../peers/certificate.ts'
import { nginxProgram } from '../peers/floors.ts'
import type { Ports } from '../peers/peer.ts'
import type { Ground } from '../peers/start.ts'
import { FILE_SIZES, fileBytes } from './files.ts'

/**
 * `files`: nginx, head and body in one segment. `split`: nginx as shipped, whose head and body are two segments. `sink`:
 * raw sockets, takes uploads. `node`, `go`, `bun`: an ordinary app on each. `https`: that of Bun, with TLS; `h2c`: that of
 * Node, by HTTP/2. `echo`,
 * `datagrams`: bytes and datagrams come back.
 */
export const ORIGINS = [
  'files',
  'split',
  'sink',
  'node',
  'go',
  'bun',
  'https',
  'h2c',
  'echo',
  'datagrams',
] as const
export type OriginName = (typeof ORIGINS)[number]

export interface Origins {
  readonly ports: Ports
  readonly pids: readonly number[]
  /** Why an app is not there. */
  readonly missing: Readonly<Partial<Record<string, string>>>
  stop(): Promise<void>
}

const LISTENING = { ready: /^listening (\d+)$/ }

export async function startOrigins(names: readonly OriginName[], ground?: Ground): Promise<Origins> {
  const children: Child[] = []
  const folders: Scratch[] = []
  const ports: Record<string, number> = {}
  const missing: Record<string, string> = {}
  const begin = (words: readonly string[], options: LaunchOptions = {}): Promise<Launched> =>
    ground?.launch ? ground.launch('client', words, options) : launch(words, options)
  const program = async (...words: readonly string[]): Promise<number> => {
    const child = await begin(words, LISTENING)
    children.push(child)
    return Number(child.match?.[1])
  }
  const own = (file: string, ...more: readonly string[]): Promise<number> =>
    program('bun', join(import.meta.dir, file), ...more)
  const nginx = async (settings: string): Promise<number> => {
    // Without nginx the same files come from our own program.
    if (!Bun.which('nginx')) return own('sink.ts')
    const folder = scratch('nginx')
    folders.push(folder)
    const port = freePort()
    const server = `${settings} open_file_cache max=100 inactive=3600s; add_header X-Answer "$request_method $request_uri";
  server { listen ${ground?.launch ? '' : '127.0.0.1:'}${port} backlog=4096; root ${wwwFolder()}; }`
    children.push(await begin(nginxProgram({ file: folder.write }, server).command))
    await (ground?.listening ?? listening)(port)
    return port
  }
  const starts: Readonly<Record<OriginName, () => Promise<number>>> = {
    files: () => nginx('sendfile on; tcp_nopush on;'),
    split: () => nginx('sendfile on;'),
    sink: () => own('sink.ts'),
    node: async () => program(need('node'), join(import.meta.dir, 'app.mjs')),
    h2c: async () => program(need('node'), join(import.meta.dir, 'app.mjs'), 'h2c'),
    go: async () => program(await goApp()),
    bun: () => own('app-process.ts'),
    https: () => own('app-process.ts', JSON.stringify(certificate())),
    echo: () => own('echo.ts'),
    datagrams: () => own('datagram-echo.ts'),
  }
  for (const name of names) {
    try {
      ports[name] = await starts[name]()
    } catch (error) {
      missing[name] = reasonOf(error)
    }
  }
  return {
    ports,
    pids: children.map(({ pid }) => pid),
    missing,
    async stop() {
      for (const child of children.toReversed()) await child.stop()
      for (const folder of folders) folder.remove()
    },
  }
}

let www: Scratch | undefined
/** All files, for nginx and for the load generator, which compares with them. */
export function wwwFolder(): string {
  if (!www) {
    www = scratch('www')
    for (const [name, size] of Object.entries(FILE_SIZES)) www.write(name, fileBytes(size))
  }
  return www.path('.')
}

function need(program: string): string {
  const path = Bun.which(program)
  if (!path) throw new Error(`needs ${program}, which is not installed`)
  return path
}

async function goApp(): Promise<string> {
  const target = join(peersFolder, 'bin/bench-go-app')
  const source = join(import.meta.dir, 'app.go')
  const built = Bun.file(target)
  if ((await built.exists()) && built.lastModified > Bun.file(source).lastModified) return target
  const command = [need('go'), 'build', '-o', target, source]
  const { code, stderr } = await finish(command, { env: { GO111MODULE: 'off' } })
  if (code !== 0) throw new Error(`go build: ${stderr.slice(-200)}`)
  return target
}
