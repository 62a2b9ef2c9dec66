// Finds the ports on which a command, or its child processes, listen.

import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs'

/** A pattern for one entry of the kernel's tables: /proc/net/tcp, "man 5 proc_pid_net". */
const LISTENING = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A \S+ \S+ \S+\s+\d+\s+\d+ (\d+) /

/** The number of bytes that are read of a table, which lists listening sockets first: room for 400 of them. */
const MAX_TABLE_BYTES = 65_536
const V4 = { loopback: '0100007F', any: '00000000' } as const
const V6 = { loopback: `${'0'.repeat(24)}01000000`, any: '0'.repeat(32) } as const

/** Whether the system reports a listener at this address. `false` if it does not report them. */
export function listensHere({ host, port }: { readonly host?: string; readonly port?: number }): boolean {
  if (process.platform !== 'linux' || host === undefined || port === undefined) return false
  const isName = host === 'localhost' || host.endsWith('.localhost')
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')} `
  const isListed = (table: string, addresses: typeof V4 | typeof V6) =>
    beginningOf(table).some(
      line => LISTENING.test(line) && Object.values(addresses).some(one => line.includes(` ${one}${end}`)),
    )
  return (
    ((isName || host === '127.0.0.1') && isListed('/proc/net/tcp', V4)) ||
    ((isName || host === '::1') && isListed('/proc/net/tcp6', V6))
  )
}

function beginningOf(table: string): readonly string[] {
  try {
    const file = openSync(table, 'r')
    try {
      const bytes = Buffer.alloc(MAX_TABLE_BYTES)
      let length = 0
      // The kernel returns one page at a time.
      for (let read = -1; read !== 0; length += read)
        read = readSync(file, bytes, length, bytes.length - length, null)
      return bytes.toString('latin1', 0, length).split('\n')
    } finally {
      closeSync(file)
    }
  } catch {
    return [] // no such tables, as in some sandboxes: a connection will show it
  }
}

/** Returns the ports of a process and its descendants, sorted. Asks the system; the output of a command does not matter. */
export async function listeningPorts(pid: number): Promise<readonly number[]> {
  const ports = process.platform === 'linux' ? portsOnLinux(pid) : await portsByLsof(pid)
  return [...new Set(ports)].sort((a, b) => a - b)
}

function portsOnLinux(pid: number): readonly number[] {
  const inodes = new Set(familyOf(pid).flatMap(socketsOf))
  if (inodes.size === 0) return []
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap(table =>
    linesOf(table).flatMap(line => {
      const [, port = '', inode = ''] = LISTENING.exec(line) ?? []
      return inodes.has(inode) ? [Number.parseInt(port, 16)] : []
    }),
  )
}

/** Returns the process and its descendants: npm starts a shell, which starts the dev server. */
export function familyOf(pid: number): readonly number[] {
  const children = new Map<number, number[]>()
  for (const name of namesIn('/proc')) {
    if (!/^\d+$/.test(name)) continue
    // State and parent follow the name, which is in brackets and may contain any character.
    const [, parent] = /\) \S (\d+) /.exec(linesOf(`/proc/${name}/stat`).join('\n')) ?? []
    if (parent === undefined) continue
    const siblings = children.get(Number(parent)) ?? []
    siblings.push(Number(name))
    children.set(Number(parent), siblings)
  }
  const family = [pid]
  for (const one of family) family.push(...(children.get(one) ?? []))
  return family
}

function socketsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`
  return namesIn(folder).flatMap(name => {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${name}`)) ?? []
      return inode === undefined ? [] : [inode]
    } catch {
      return [] // closed since
    }
  })
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // the process is gone
  }
}

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, 'latin1').split('\n')
  } catch {
    return []
  }
}

/**
 * Returns the ports on macOS, which has no such tables. The command runs in a process group of its own number or in
 * ours, so both are checked.
 */
async function portsByLsof(pid: number): Promise<readonly number[]> {
  const { execFile } = await import('node:child_process')
  const { promisify } = await import('node:util')
  const run = promisify(execFile)
  try {
    const { stdout: table } = await run('ps', ['-A', '-o', 'pid=,ppid='])
    const parents = table.split('\n').map(line => line.trim().split(/\s+/).map(Number))
    const family = [pid]
    for (const one of family)
      family.push(...parents.filter(([, parent]) => parent === one).map(([child = 0]) => child))
    const { stdout } = await run('lsof', [
      '-nP',
      '-a',
      '-iTCP',
      '-sTCP:LISTEN',
      '-Fn',
      '-p',
      family.join(','),
    ])
    return [...stdout.matchAll(/^n\S*:(\d+)$/gm)].map(([, port]) => Number(port))
  } catch {
    return [] // lsof ends with 1 if nothing listens
  }
}
