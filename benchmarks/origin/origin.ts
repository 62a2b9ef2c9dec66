// The apps behind the tunnels: `files` answers GETs of fixed sizes, `sink` swallows uploads and does the rest.

import { join } from 'node:path'
import { type Child, launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { scratch } from '../peers/binary.ts'
import type { Origins } from '../peers/peer.ts'

/** What both kinds serve at `/NAME`, byte for byte the same. */
export const FILE_SIZES: Readonly<Record<string, number>> = {
  '20': 20,
  '1k': 1024,
  '10k': 10_240,
  '64k': 65_536,
  '100k': 102_400,
  '512k': 524_288,
  '1m': 1_048_576,
  '10m': 10_485_760,
  '100m': 104_857_600,
}

/** Bytes that betray a shifted, repeated or missing piece: a running counter, not zeros. */
export function fileBytes(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  const words = new Uint32Array(bytes.buffer, 0, size >> 2)
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i, 2_654_435_761)
  return bytes
}

export interface RunningOrigins {
  readonly ports: Origins
  readonly pids: readonly number[]
  readonly kinds: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/** Gives back what it gets: for round trips. */
export async function startEcho(): Promise<{ readonly port: number; stop(this: void): Promise<void> }> {
  const child = await launch(['bun', join(import.meta.dir, 'echo.ts')], { ready: /^listening (\d+)$/ })
  return { port: Number(child.match?.[1]), stop: child.stop }
}

/** The same by UDP; something that waits for the tunnel asks the TCP port of the same number. */
export async function startDatagramEcho(): Promise<{
  readonly port: number
  stop(this: void): Promise<void>
}> {
  const child = await launch(['bun', join(import.meta.dir, 'datagram-echo.ts')], {
    ready: /^listening (\d+)$/,
  })
  return { port: Number(child.match?.[1]), stop: child.stop }
}

/** nginx serves the files where it is installed and wanted; the sink is always our own small program. */
export async function startOrigins(wanted: 'nginx' | 'bun'): Promise<RunningOrigins> {
  const kind = wanted === 'nginx' && Bun.which('nginx') ? 'nginx' : 'bun'
  const sink = await launch(['bun', join(import.meta.dir, 'sink.ts')], { ready: /^listening (\d+)$/ })
  const sinkPort = Number(sink.match?.[1])
  const files = kind === 'nginx' ? await nginx() : { child: sink, port: sinkPort, remove: () => {} }
  return {
    ports: { files: files.port, sink: sinkPort },
    pids: kind === 'nginx' ? [files.child.pid, sink.pid] : [sink.pid],
    kinds: {
      files: kind === 'nginx' ? 'nginx, one process' : 'Bun.listen program',
      sink: 'Bun.listen program',
    },
    async stop() {
      await sink.stop()
      if (files.child !== sink) await files.child.stop()
      files.remove()
    },
  }
}

async function nginx(): Promise<{ readonly child: Child; readonly port: number; remove(this: void): void }> {
  const folder = scratch('nginx')
  const port = freePort()
  for (const [name, size] of Object.entries(FILE_SIZES))
    await Bun.write(folder.path(`www/${name}`), fileBytes(size))
  await Bun.write(
    folder.path('nginx.conf'),
    `daemon off; master_process off; pid ${folder.path('pid')}; error_log stderr error;
user root;
events { worker_connections 8192; }
http {
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; default_type application/octet-stream;
  keepalive_requests 1000000000; keepalive_timeout 3600s; open_file_cache max=100 inactive=3600s;
  client_body_temp_path ${folder.path('body')}; proxy_temp_path ${folder.path('proxy')};
  fastcgi_temp_path ${folder.path('fastcgi')}; uwsgi_temp_path ${folder.path('uwsgi')};
  scgi_temp_path ${folder.path('scgi')};
  server { listen 127.0.0.1:${port} backlog=4096; root ${folder.path('www')}; }
}
`,
  )
  const child = await launch([
    'nginx',
    '-p',
    folder.path(''),
    '-e',
    'stderr',
    '-c',
    folder.path('nginx.conf'),
  ])
  await listening(port)
  return { child, port, remove: folder.remove }
}
