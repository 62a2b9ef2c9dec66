// Colours, or none: what NO_COLOR, FORCE_COLOR and the terminal say.

import pc from 'picocolors'

export type Palette = Pick<
  ReturnType<typeof pc.createColors>,
  'bold' | 'dim' | 'red' | 'yellow' | 'green' | 'cyan'
>

/**
 * Returns the palette. NO_COLOR (any value but empty) wins, then FORCE_COLOR, then whether the stream is a terminal that has
 * colours.
 */
export function paletteFor(
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): Palette {
  const { NO_COLOR, FORCE_COLOR, TERM } = environment
  if (NO_COLOR) return pc.createColors(false)
  return pc.createColors(Boolean(FORCE_COLOR) || (isTerminal && TERM !== 'dumb'))
}
