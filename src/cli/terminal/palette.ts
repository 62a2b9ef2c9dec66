// Colours, depending on NO_COLOR, FORCE_COLOR and the terminal.

import pc from 'picocolors'

export type Palette = Pick<
  ReturnType<typeof pc.createColors>,
  'bold' | 'dim' | 'red' | 'yellow' | 'green' | 'cyan'
>

/** Returns the palette. NO_COLOR (with any value) wins, then FORCE_COLOR, then whether the stream is a terminal with colours. */
export function paletteFor(
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): Palette {
  const { NO_COLOR, FORCE_COLOR, TERM } = environment
  if (NO_COLOR) return pc.createColors(false)
  return pc.createColors(Boolean(FORCE_COLOR) || (isTerminal && TERM !== 'dumb'))
}
