// A body of multipart/form-data as its parts (RFC 7578), by bytes: files are seldom text.

export interface Part {
  readonly name: string
  /** Its file name, where it is a file. */
  readonly file: string | undefined
  readonly type: string
  readonly bytes: Uint8Array
}

/** `undefined`: it has none. A body that was cut has its last part as far as it goes. */
export function partsOf(bytes: Uint8Array, contentType: string): readonly Part[] | undefined {
  const [, quoted, plain] = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) return undefined
  // Each character is a byte, so that places in the text are places in the bytes.
  const text = latin1(bytes)
  const delimiter = `\r\n--${boundary}`
  const first = text.startsWith(delimiter.slice(2)) ? 0 : text.indexOf(delimiter) + 2
  if (first < 2 && !text.startsWith(delimiter.slice(2))) return undefined
  const parts: Part[] = []
  for (let at = first + delimiter.length - 2; at < text.length && !text.startsWith('--', at); ) {
    const next = text.indexOf(delimiter, at)
    const end = next < 0 ? text.length : next
    const head = text.indexOf('\r\n\r\n', at)
    if (head >= 0 && head < end) parts.push(partOf(bytes.subarray(at, head), bytes.subarray(head + 4, end)))
    if (next < 0) break
    at = next + delimiter.length
  }
  return parts
}

function partOf(head: Uint8Array, bytes: Uint8Array): Part {
  const lines = new TextDecoder().decode(head)
  const disposition = /^content-disposition:(.*)$/im.exec(lines)?.[1] ?? ''
  const [, name = ''] = /[; ]name="([^"]*)"/i.exec(disposition) ?? []
  const [, file] = /filename="([^"]*)"/i.exec(disposition) ?? []
  const type = /^content-type:(.*)$/im.exec(lines)?.[1]?.trim() ?? ''
  return { name, file, type, bytes }
}

function latin1(bytes: Uint8Array): string {
  let text = ''
  // More arguments than this are too many for one call.
  for (let at = 0; at < bytes.length; at += 32_768)
    text += String.fromCharCode(...bytes.subarray(at, at + 32_768))
  return text
}
