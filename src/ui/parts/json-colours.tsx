// JSON as coloured text: names, numbers, words, signs.

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\b\d[\d.eE+-]*\b)|\b(true|false|null)\b|([{}[\],]+)/g
/** The length above which a text has one colour. */
const MAX_CHARS = 100_000

export function JsonColours({ text }: { readonly text: string }) {
  if (text.length > MAX_CHARS) return <>{text}</>
  const parts: preact.ComponentChild[] = []
  let end = 0
  for (const found of text.matchAll(TOKEN)) {
    const [whole, quoted, colon, number, word] = found
    if (found.index > end) parts.push(text.slice(end, found.index))
    end = found.index + whole.length
    const tone =
      quoted !== undefined
        ? colon === undefined
          ? 's'
          : 'k'
        : number !== undefined || word !== undefined
          ? 'n'
          : 'p'
    parts.push(
      <span key={found.index} class={`tok-${tone}`}>
        {quoted ?? whole}
      </span>,
      colon ?? '',
    )
  }
  parts.push(text.slice(end))
  return <>{parts}</>
}
