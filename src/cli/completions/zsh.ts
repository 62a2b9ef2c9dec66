// Completions of zsh.

import type { CommandShape, FlagShape } from './shape.ts'

export function zsh(shapes: readonly CommandShape[]): string {
  const deeper = shapes.filter(({ path }) => path.length > 0).map(({ path }) => quoted(path.join(' ')))
  return `#compdef localtunnels lt
# Completions of localtunnels for zsh. Use: source <(localtunnels completions zsh)
_localtunnels() {
  local command='' next i
  for ((i = 2; i < CURRENT; i++)); do
    next="\${command:+$command }\${words[i]}"
    case $next in (${deeper.join('|')}) command=$next ;; esac
  done
  local -a commands
  case $command in
${shapes.map(oneCase).join('\n')}
  esac
}
compdef _localtunnels localtunnels lt
`
}

function oneCase({ path, flags, commands, takesFile }: CommandShape): string {
  const described = commands.map(({ name, meaning }) => quoted(`${name}:${meaning}`))
  const follows = takesFile ? "'*:file:_files'" : "'*: :{_describe command commands}'"
  return `    (${quoted(path.join(' '))})
      commands=(${described.join(' ')})
      _arguments ${[...flags.map(wordOf), follows].join(' \\\n        ')}
      ;;`
}

function wordOf({ long, short, meaning, value }: FlagShape): string {
  const text = meaning.replace(/[\\[\]:]/g, match => `\\${match}`)
  const takes = value === undefined ? '' : `:${value}:${COMPLETERS[value]}`
  const names = short === undefined ? long : `{${short},${long}}`
  return `${names}${quoted(`[${text}]${takes}`)}`
}

const COMPLETERS = { file: '_files', folder: '_files -/', text: ' ' } as const

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
