// What kind of content a file has, by the ending of its name.

import { extname } from 'node:path'
import { mimes } from 'mrmime'

/** The value of Content-Type. Text is UTF-8: for anything else a browser would guess. */
export function contentTypeOf(path: string): string {
  const extension = extname(path).slice(1).toLowerCase()
  // Not `lookup`: it takes a file named `html` for one, and finds `constructor` in the object's prototype.
  const type = Object.hasOwn(mimes, extension) ? mimes[extension] : undefined
  if (type === undefined) return 'application/octet-stream'
  return type.startsWith('text/') ? `${type}; charset=utf-8` : type
}
