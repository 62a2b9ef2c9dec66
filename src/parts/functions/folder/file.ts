// Finds and opens regular files inside a folder, and nothing else.

import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'

/** A file or folder inside the folder, with links resolved. */
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

/** The errors of the file system that mean that there is nothing for a visitor. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'EINVAL'])

// Follows no link that was put there a moment ago, and does not wait for the other end of a pipe. Windows has neither flag.
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * Finds `names` inside `folder`. `undefined` if nothing is there, if a link leads out of the folder or to a name that
 * is not public, and for devices, pipes and sockets. The folder itself may be a link, and may change.
 */
export function locate(folder: string, names: readonly string[]): Promise<Place | undefined> {
  return unlessAbsent(async () => {
    const root = await realpath(folder)
    const path = await realpath(join(root, ...names))
    const inside = relative(root, path)
    // Checked again for the real path, which a link, another case or a short name of Windows may have changed. `..`
    // is not public, and another drive is an absolute path.
    if (isAbsolute(inside) || !isPublic(inside === '' ? [] : inside.split(sep))) return undefined
    const stats = await lstat(path)
    return stats.isFile() || stats.isDirectory() ? { path, isFolder: stats.isDirectory() } : undefined
  })
}

/** Opens the file at a place. `undefined` if it is not a file any more. */
export function openFile({ path }: Place): Promise<OpenFile | undefined> {
  return unlessAbsent(async () => {
    const handle = await open(path, OPEN_FLAGS)
    try {
      const stats = await handle.stat({ bigint: true })
      if (!stats.isFile()) {
        await handle.close()
        return undefined
      }
      // Both times count, because a tool may reset the first but not the second. The inode is left out, because
      // visitors need not know it.
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
 * Reads the bytes of a file from `start` up to, but not including, `end`, at the speed of the reader. Closes the
 * handle at the end, and when the reader stops. If the file became shorter, that is an error.
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
          // A new array for each piece, because the reader keeps it.
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
        // Waits first: the number of a closed file may become another file's, and the read would return its bytes.
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
  /** Whether it ends with a slash, which only a folder may have. */
  readonly isFolder: boolean
}

/** A pattern for separators, and for NUL, which ends a path for the system. On Windows also `:`, for other streams and drives. */
const FORBIDDEN = process.platform === 'win32' ? /[/\\\0:]/ : /[/\\\0]/

/**
 * Parses the `pathname` of a URL, in which `.` and `..` are already resolved. `undefined` if no file may have this
 * name. Each part is decoded once and separately, so that `%2F` never becomes a separator.
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
 * Whether these names, from the folder downwards, may be shown. None may begin with a dot, which also excludes `..`.
 * `.well-known` in the folder itself is public (RFC 8615).
 */
export function isPublic(names: readonly string[]): boolean {
  return names.every((name, depth) => !name.startsWith('.') || (depth === 0 && name === '.well-known'))
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    // Not UTF-8, or a single percent sign: no file has such a name.
    return undefined
  }
}
