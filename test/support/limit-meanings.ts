// What each limit bounds: the beginning of its docstring, up to its default.

import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

/** The beginning of each docstring. */
export async function limitMeanings(): Promise<
  Readonly<Record<'client' | 'server', Readonly<Record<string, string>>>>
> {
  const beginnings = async (file: string, type: string) =>
    Object.fromEntries(
      [...(await docstringsOf(file, type))].map(([option, text]) => [
        option,
        text.split(' Default')[0]?.replace(/\.$/, '') ?? '',
      ]),
    )
  return {
    client: await beginnings('src/client/limits.ts', 'ClientLimits'),
    server: await beginnings('src/server/settings/options.ts', 'ServerLimits'),
  }
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
  /^If (?:exceeded|longer|more)\b|^`0`|^A reload|^At (?:least|most)|^More than|`[A-Z_]{4,}`|back|not counted/

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
    server: without(await docstringsOf('src/server/settings/options.ts', 'ServerLimits')),
  }
}
