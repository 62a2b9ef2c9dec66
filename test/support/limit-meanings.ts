// What each limit bounds: the beginning of its docstring, up to its default.

import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

/** The text of src/config/schema/limit-meanings.ts. */
export async function limitMeanings(): Promise<string> {
  const client = await recordOf('CLIENT_LIMITS', 'src/client/limits.ts', 'ClientLimits')
  const server = await recordOf('SERVER_LIMITS', 'src/server/options.ts', 'ServerLimits')
  return `// What each limit bounds: the beginning of its docstring. Written by LT_WRITE_DOCS=1 bun test test/config/docs.test.ts.
// biome-ignore-all format: one line each

${client}
${server}`
}

async function recordOf(name: string, file: string, type: string): Promise<string> {
  const lines = [...(await docstringsOf(file, type))].map(([option, text]) => {
    const meaning = text.split(' Default')[0]?.replace(/\.$/, '') ?? ''
    return `  ${option}: ${quoted(meaning)},\n`
  })
  return `export const ${name}: Readonly<Record<string, string>> = {\n${lines.join('')}}\n`
}

/** The docstring of each limit, in one line. */
async function docstringsOf(file: string, type: string): Promise<ReadonlyMap<string, string>> {
  const source = await Bun.file(join(root, file)).text()
  const body = new RegExp(`^export interface ${type} \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(source)?.[1]
  if (body === undefined) throw new Error(`${file} has no interface ${type}`)
  const members = [...body.matchAll(/\/\*\*([\s\S]*?)\*\/\s+readonly (\w+): number/g)]
  return new Map(
    members.map(([, comment = '', option = '']) => [
      option,
      comment
        .replace(/^\s*\*/gm, '')
        .replace(/\s+/g, ' ')
        .trim(),
    ]),
  )
}

/** Sentences that the documentation has besides the first: what happens at the limit, and what else bounds it. */
const NEEDED =
  /^Above|^Longer|^Beyond|^`0`|^A reload|^At (?:least|most)|^More than|`[A-Z_]{4,}`|back|not counted/

/** What the documentation says of each limit: its docstring without the default, which has a place of its own there; what says how it fills again stays. */
export async function limitTexts(): Promise<
  Readonly<Record<'client' | 'server', ReadonlyMap<string, string>>>
> {
  const without = (texts: ReadonlyMap<string, string>) =>
    new Map(
      [...texts].map(([option, text]) => [
        option,
        text
          .replace(/ Default .*?[.](?= |$)/, part => (part.includes('back') ? part : ''))
          .split(/(?<=[.]) (?=[A-Z`])/)
          .filter((sentence, at) => at === 0 || NEEDED.test(sentence))
          .join(' '),
      ]),
    )
  return {
    client: without(await docstringsOf('src/client/limits.ts', 'ClientLimits')),
    server: without(await docstringsOf('src/server/options.ts', 'ServerLimits')),
  }
}

function quoted(text: string): string {
  return text.includes("'") ? JSON.stringify(text) : `'${text}'`
}
