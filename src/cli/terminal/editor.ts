// Opens a text in the user's editor, and returns it when the editor is closed.

import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { optionInvalid } from '../../errors.ts'

type Environment = Readonly<Record<string, string | undefined>>

export function editorOf({ VISUAL, EDITOR }: Environment): string {
  return VISUAL || EDITOR || (process.platform === 'win32' ? 'notepad' : 'vi')
}

/** Edits the text. Only the user can read the file, which is deleted afterwards. Rejects with `OPTION_INVALID`. */
export async function editText(text: string, environment: Environment): Promise<string> {
  const editor = editorOf(environment)
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
  const file = join(folder, 'request.http')
  try {
    await writeFile(file, text, { mode: 0o600 })
    await run(editor, file)
    return await readFile(file, 'utf8')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs an editor with a shell, because EDITOR may have arguments: `code --wait`. */
function run(editor: string, file: string): Promise<void> {
  const [program, args] =
    process.platform === 'win32'
      ? (['cmd', ['/c', `${editor} "${file}"`]] as const)
      : (['sh', ['-c', `${editor} "$1"`, 'sh', file]] as const)
  const child = spawn(program, args, { stdio: 'inherit' })
  return new Promise((resolve, reject) => {
    const failed = (why: string, cause?: Error) =>
      reject(
        optionInvalid(
          `The editor "${editor}" ${why}: nothing was sent. Set EDITOR or VISUAL to an editor that waits until it is closed, such as "code --wait".`,
          { cause },
        ),
      )
    child.once('error', cause => failed('could not be started', cause))
    child.once('exit', code => (code === 0 ? resolve() : failed(`ended with ${code ?? 'a signal'}`)))
  })
}
