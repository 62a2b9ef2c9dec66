// Divides a body of multipart/form-data into its parts (RFC 7578), as bytes, because files are seldom text.

export interface Part {
  readonly name: string
  /** The file name. `undefined` if the part is not a file. */
  readonly file: string | undefined
  readonly type: string
  readonly bytes: Uint8Array
}

/** Returns the parts. `undefined` if there are none. A truncated body has an incomplete last part. */
export function partsOf(bytes: Uint8Array, contentType: string): readonly Part[] | undefined {
  const [, quoted, plain] = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) return undefined
  // Each character is a byte, so positions in the text are positions in the bytes.
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
  // A call has a maximum number of arguments.
  for (let at = 0; at < bytes.length; at += 32_768)
    text += String.fromCharCode(...bytes.subarray(at, at + 32_768))
  return text
}
