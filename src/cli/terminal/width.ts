// Finds how many columns of a terminal a text needs.

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
