// Finds and opens files inside a folder, and nothing but regular files, and nowhere else.

import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'

/** A file or folder at a place in the folder, with links resolved. */
export interface Place {
  readonly path: string
  readonly isFolder: boolean
}

export interface OpenFile {
  readonly handle: FileHandle
  readonly size: number
  readonly modifiedMs: number
  /** A strong entity tag, quotes included. */
  readonly etag: string
}

/** Responses of the file system that mean: there is nothing for a visitor here. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'EINVAL'])

// Neither follows a link that was put there a moment ago, nor waits for the other end of a pipe. Windows has neither.
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * Looks for `names` inside `folder`. `undefined` when nothing is there, when a link leads out of the folder or to a name
 * that is not public, and for devices, pipes and sockets. The folder itself may be a link, and may be another one tomorrow.
 */
export function locate(folder: string, names: readonly string[]): Promise<Place | undefined> {
  return unlessAbsent(async () => {
    const root = await realpath(folder)
    const path = await realpath(join(root, ...names))
    const inside = relative(root, path)
    // Asked again of the real path: a link, another case or a short name of Windows may have led somewhere else. `..` is
    // not public either; another drive is absolute.
    if (isAbsolute(inside) || !isPublic(inside === '' ? [] : inside.split(sep))) return undefined
    const stats = await lstat(path)
    return stats.isFile() || stats.isDirectory() ? { path, isFolder: stats.isDirectory() } : undefined
  })
}

/** Opens the file at a place; `undefined` when it is a file no longer. */
export function openFile({ path }: Place): Promise<OpenFile | undefined> {
  return unlessAbsent(async () => {
    const handle = await open(path, OPEN_FLAGS)
    try {
      const stats = await handle.stat({ bigint: true })
      if (!stats.isFile()) {
        await handle.close()
        return undefined
      }
      // Both times: a tool may set the first back, and not the second. No inode: visitors need not learn it.
      const stamps = [stats.size, stats.mtimeNs, stats.ctimeNs].map(number => number.toString(36))
      return {
        handle,
        size: Number(stats.size),
        modifiedMs: Number(stats.mtimeMs),
        etag: `"${stamps.join('-')}"`,
      }
    } catch (error) {
      await handle.close()
      throw error
    }
  })
}

async function unlessAbsent<Found>(look: () => Promise<Found>): Promise<Found | undefined> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof Error && 'code' in error && ABSENT.has(String(error.code))) return undefined
    throw error
  }
}

const PIECE_BYTES = 65_536

/**
 * The bytes of a file from `start` up to, not including, `end`, read at the speed of the reader. Closes the handle at the
 * end, and when the reader stops. A file that became shorter in the meantime is an error, and nothing is put in its place.
 */
export function bytesOf(handle: FileHandle, start: number, end: number): ReadableStream<Uint8Array> {
  let at = start
  let reading: Promise<unknown> = Promise.resolve()
  let closing: Promise<void> | undefined
  const close = () => (closing ??= handle.close())
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          // A new array for each piece: the reader keeps it.
          const wanted = Math.min(PIECE_BYTES, end - at)
          const read = handle.read(new Uint8Array(wanted), 0, wanted, at)
          reading = read
          const { bytesRead, buffer } = await read
          if (bytesRead === 0) throw new Error('the file became shorter while it was read')
          at += bytesRead
          controller.enqueue(buffer.subarray(0, bytesRead))
          if (at < end) return
          controller.close()
          await close()
        } catch (error) {
          controller.error(error)
          await close()
        }
      },
      async cancel() {
        // Not before: the number of a closed file may be another file's at once, and the read would get its bytes.
        await reading.catch(ignore)
        await close()
      },
    },
    { highWaterMark: 0 },
  )
}

/** The reader has the error already. */
function ignore(): void {}

/** The path of a request that names something in the folder. */
export interface FolderPath {
  /** The names from the folder downwards, decoded; empty for the folder itself. */
  readonly names: readonly string[]
  /** Whether it ends in a slash, so that only a folder can be meant. */
  readonly isFolder: boolean
}

/** Separators, and NUL, which ends a path early for the system. Windows reads `:` too: other streams, other drives. */
const FORBIDDEN = process.platform === 'win32' ? /[/\\\0:]/ : /[/\\\0]/

/**
 * Reads `pathname` of a URL, in which `.` and `..` are resolved already. `undefined`: no file can have this name, or
 * none that may be shown. Each part is decoded once and by itself, so that `%2F` never becomes a separator.
 */
export function folderPath(pathname: string): FolderPath | undefined {
  const parts = pathname.split('/').slice(1)
  const isFolder = parts.at(-1) === ''
  if (isFolder) parts.pop()
  const names: string[] = []
  for (const part of parts) {
    const name = decoded(part)
    // An empty part is refused rather than skipped: `//host/` would otherwise become a redirect to another host.
    if (name === undefined || name === '' || FORBIDDEN.test(name)) return undefined
    names.push(name)
  }
  return isPublic(names) ? { names, isFolder } : undefined
}

/**
 * Whether these names, from the folder downwards, may be shown: none begins with a dot, which also keeps `..` out.
 * `.well-known` in the folder itself is meant for the public (RFC 8615).
 */
export function isPublic(names: readonly string[]): boolean {
  return names.every((name, depth) => !name.startsWith('.') || (depth === 0 && name === '.well-known'))
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    // Not UTF-8, or a percent sign by itself: no name that can be looked up.
    return undefined
  }
}
