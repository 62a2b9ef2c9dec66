// Formats numbers and foreign text for people at a terminal.

/** Returns `812 B`, `4.1 kB`, `12 MB`: decimal units, two significant digits. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  let value = bytes / 1_000
  let unit = 0
  // 999.5 would be shown as 1000, so the next unit begins there.
  while (value >= 999.5 && unit < 3) {
    value /= 1_000
    unit++
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${['kB', 'MB', 'GB', 'TB'][unit]}`
}

/** Returns `18 ms`, `1.2 s`, `31 min`, `2 h 5 min`, `89 d 23 h`. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** Returns `12:01:07`, local time. */
export function formatTime(date: Date): string {
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map(part => String(part).padStart(2, '0'))
    .join(':')
}

/** Returns `1 request`, `2 requests`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

// Controls (Cc) move cursors and change titles; format characters (Cf) and line separators reverse text, hide it or
// break it. Visitors can send all of them, so they are escaped.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Returns foreign text with every control and invisible character escaped, as `\x1b` or `\u202e`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, character => {
    const code = character.codePointAt(0) ?? 0
    return code < 256
      ? `\\x${code.toString(16).padStart(2, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** Returns a line of JSON in which control and invisible characters are escaped, as `\u202e`. A parser reads the same text. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE, character =>
    // A character beyond 16 bits is written as its two halves.
    character
      .split('')
      .map(half => `\\u${half.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

/** Truncates plain text to a number of columns, with `…` if something is missing. Wide characters count twice. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (widthOf(text) <= columns) return text
  let width = 0
  let kept = ''
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    width += widthOf(segment)
    if (width > columns - 1) break
    kept += segment
  }
  return `${kept}…`
}

/** Returns plain text as lines of at most `columns`, broken between words. A longer word gets a line of its own. */
export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(`${last} ${word}`) <= columns)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** A pattern for East Asian wide characters and pictures: approximately UAX #11, for which Node has no function. */
const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u

export function widthOf(text: string): number {
  return typeof Bun === 'undefined' ? approximateWidth(text) : Bun.stringWidth(text)
}

/** Returns the width: one or two columns for each visible character. Controls were escaped before. */
export function approximateWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const { segment } of new Intl.Segmenter().segment(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}
