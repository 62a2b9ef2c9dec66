// The prose of comments, messages and documents: how often each habit of the house dialect occurs. Every count may only fall.

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'

const ROOT = join(import.meta.dirname, '..')
const CEILINGS = join(import.meta.dirname, 'prose-ceilings.json')

/** Start of a sentence, after the mark of the previous one or at the start of the text. */
const START = '(?:^|[.;:!?] )'

/** Each habit, as a regular expression over one paragraph without line breaks. CONTRIBUTING.md says how to write instead. */
const HABITS: Readonly<Record<string, RegExp>> = {
  'relative clause as subject (Whose, Whom, Who)': new RegExp(`${START}Who(?:se|m)?\\b(?![^.]*\\?)`, 'g'),
  'pronoun without a noun (One that, Those of)': new RegExp(
    `${START}(?:One|Those|These|That)\\b (?:that|of|who|with|without|for|by|from|to|which|whose|in|is|are)\\b`,
    'g',
  ),
  'What … as subject': new RegExp(`${START}What\\b(?![^.]*\\?)`, 'g'),
  'docstring begins with It or They': /^(?:It|They)\b/g,
  'docstring is a prepositional phrase':
    /^(?:Of|For|By|In|At|To|From|With|Without|While|As|Until|Behind) [^.;:]*\.?$/g,
  'likewise, meanwhile': /\b(?:likewise|meanwhile)\b/gi,
  'so many, so long without as': /\bso (?:many|much|long|often|soon)\b(?! as)/gi,
  'condition: consequence (Above: …)': new RegExp(
    `${START}(?:Above|Below|Beyond|Others?|Anything else|Not there|Taken|Longer|More|Fewer|Another)[^.:]{0,60}: `,
    'g',
  ),
  'answer for response or reply': /\banswer(?:s|ed|ing)?\b(?!\()/gi,
  'take back, give back': /\b(?:takes?|took|taken|taking|gives?|gave|given|giving)(?: \w+)? back\b/gi,
  'walls, ways in': /\bwalls?\b|\bways? in\b/gi,
  'under way, on its way': /\bunder way\b|\bon (?:its|their) way\b/gi,
  'comma too': /, too\b/g,
  'in all, in vain, for ever': /\bin (?:all|vain)\b(?! (?:cases|other|of))|\bfor ever\b/gi,
  'told, tells of, says so': /\b(?:gets? to know|told|tells? (?:of|by)|says? so)\b/gi,
  'as it came, as they are': /\bas (?:it|they) (?:came|comes?|is|was|are|were|stands?)\b/gi,
  'by TLS, by HTTP': /\bby (?:TLS|https?|HTTP\/\d|UDP|TCP|WebSocket)\b/gi,
  'else in the middle': /[,;] else /gi,
  'and its like': /\b(?:its|their) like\b/gi,
  'is no X': /(?<!\bthere )\b(?:is|are|was|were) no (?!longer|more|need|other|such)\w+/gi,
  'beside, stands in': /\bbeside\b|\bstands? (?:in|behind|beside|there|here)\b/gi,
  'literary words': /\b(?:sound|mend|unwell|hence|perhaps|elsewhere|afresh|anew|ceases?|began|therein)\b/gi,
  'bare ratio':
    /(?<![\w.§×/]|(?:TLS|nginx|Bun|tunnels|version) (?:1\.\d (?:or|and) )?)\b[01]\.\d+(?= (?:of|and|to|in|with)\b|[,;).])(?![.\d])/g,
}

type Kind = 'comments' | 'messages' | 'documents'

/** Paragraphs of comments: consecutive comment lines, joined. */
function comments(text: string): string[] {
  const found: string[] = []
  let open = ''
  for (const line of text.split('\n')) {
    const match = /^\s*(?:\/\*\*?|\*(?!\/)|\/\/)\s?(.*?)\s*(?:\*\/)?$/.exec(line)
    const words = match?.[1] ?? ''
    if (match === null || words === '' || /^[─│┌└├▶◀]/.test(words)) {
      if (open !== '') found.push(open)
      open = ''
    } else open += `${open === '' ? '' : ' '}${words}`
    if (line.trimEnd().endsWith('*/') && open !== '') {
      found.push(open)
      open = ''
    }
  }
  return open === '' ? found : [...found, open]
}

/** String literals of three words or more. */
const messages = (text: string): string[] =>
  [...text.matchAll(/(['"`])((?:\\.|(?!\1).)*?)\1/g)]
    .map(([, , words = '']) => words)
    .filter(words => words.split(' ').length > 2)

/** Paragraphs and list items of a page, without code, tables that are generated, and marks. */
function documents(text: string): string[] {
  const plain = text
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/<!-- figures: begin -->[\s\S]*?<!-- figures: end -->/g, '')
    .replace(/<!--[\s\S]*?-->/g, '')
  return plain
    .split(/\n\s*\n|\n(?=[-*|#>] ?)/)
    .map(block =>
      block
        .replace(/^[-*|#>]+ ?/, '')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter(block => block !== '')
}

const GENERATED = /page-text\.ts$|config\/input\.ts$/
/** docs/benchmarks.md is made of `report/page.md` and a run. */
const NOT_EDITED = /CHANGELOG\.md|docs\/decisions|docs\/benchmarks/

const SOURCES: readonly (readonly [Kind, readonly string[], RegExp, (text: string) => string[]])[] = [
  ['comments', ['src/**/*.ts', 'src/**/*.tsx'], GENERATED, comments],
  ['messages', ['src/errors.ts', 'src/cli/**/*.ts', 'src/config/**/*.ts'], GENERATED, messages],
  ['documents', ['*.md', 'docs/**/*.md', 'examples/*.md', 'benchmarks/report/*.md'], NOT_EDITED, documents],
]

async function counted(): Promise<Record<string, Record<Kind, number>>> {
  const counts = Object.fromEntries(
    Object.keys(HABITS).map(name => [name, { comments: 0, messages: 0, documents: 0 }]),
  )
  for (const [kind, patterns, left, read] of SOURCES)
    for (const path of patterns.flatMap(pattern => [...new Glob(pattern).scanSync(ROOT)])) {
      if (left.test(path)) continue
      for (const paragraph of read(await Bun.file(join(ROOT, path)).text()))
        for (const [name, habit] of Object.entries(HABITS)) {
          if (name.startsWith('docstring') && kind !== 'comments') continue
          const times = paragraph.match(habit)?.length ?? 0
          if (times > 0) (counts[name] as Record<Kind, number>)[kind] += times
        }
    }
  return counts
}

/** A docstring opens with a verb in the third person, "Whether", or a noun phrase with an article or a quantity. */
const STANDARD =
  /^(?!(?:As|Is|Was|Has|Its|This|Others|Theirs|Ours|Does)\b)(?:[A-Z][a-z]+s|Whether|The|An?|Each|Every|All|No|Maximum|Minimum|Number|Time|Called)\b/

/** How many of a hundred docstrings of src open in that grammar. */
async function standardOpenings(): Promise<number> {
  const openings: string[] = []
  for (const path of new Glob('src/**/*.{ts,tsx}').scanSync(ROOT)) {
    if (GENERATED.test(path)) continue
    const text = await Bun.file(join(ROOT, path)).text()
    openings.push(...[...text.matchAll(/\/\*\*\s+(?:\* )?(\S.*)/g)].map(([, opening = '']) => opening))
  }
  return Math.floor((100 * openings.filter(one => STANDARD.test(one)).length) / openings.length)
}

interface Ceilings {
  /** A floor: it may only rise. */
  readonly openings: number
  readonly habits: Readonly<Record<string, Readonly<Record<Kind, number>>>>
}

/** Fewer than this share of a ceiling: it has to fall too. Smaller differences come and go with merges. */
const LOOSE = 0.9

test('the habits of the dialect only become fewer, and standard openings only more. LT_WRITE_PROSE=1 writes it', async () => {
  const [habits, openings] = [await counted(), await standardOpenings()]
  const before: Ceilings = existsSync(CEILINGS)
    ? await Bun.file(CEILINGS).json()
    : { openings: 0, habits: {} }
  if (process.env.LT_WRITE_PROSE === '1') {
    // A new habit begins at its count of today.
    for (const [name, kinds] of Object.entries(habits))
      for (const [kind, count] of Object.entries(kinds) as [Kind, number][])
        kinds[kind] = Math.min(count, before.habits[name]?.[kind] ?? Number.POSITIVE_INFINITY)
    const written: Ceilings = { openings: Math.max(openings, before.openings), habits }
    await Bun.write(CEILINGS, `${JSON.stringify(written, undefined, 2)}\n`)
    return
  }
  const wrong: string[] = []
  if (openings < before.openings)
    wrong.push(
      `${openings} % of the docstrings open in the standard grammar, ${before.openings} % are needed`,
    )
  for (const [name, kinds] of Object.entries(habits))
    for (const [kind, count] of Object.entries(kinds) as [Kind, number][]) {
      const ceiling = before.habits[name]?.[kind] ?? 0
      if (count > ceiling) wrong.push(`${kind}: "${name}" occurs ${count} times, ${ceiling} are allowed`)
      if (count < ceiling * LOOSE)
        wrong.push(`${kind}: "${name}" fell from ${ceiling} to ${count}: run with LT_WRITE_PROSE=1`)
    }
  expect(wrong).toEqual([])
})
