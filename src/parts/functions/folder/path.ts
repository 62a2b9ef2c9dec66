// Turns a URL's path into names inside a folder, or refuses it. In doubt it is refused.

/** The path of a request that names something in the folder. */
export interface FolderPath {
  /** The names from the folder downwards, decoded; empty for the folder itself. */
  readonly names: readonly string[]
  /** Whether it ends with a slash, which only a folder may have. */
  readonly isFolder: boolean
}

/**
 * A pattern for separators, and for NUL, which ends a path for the system. On Windows also `:`, for other streams and
 * drives.
 */
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
