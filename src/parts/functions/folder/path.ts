// The place of a URL's path inside a folder: names to walk down, or nothing. In doubt nothing.

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
