// Completions of bash, 3.2 and newer: the version on macOS has no associative arrays.

import type { CommandShape } from './shape.ts'

export function bash(shapes: readonly CommandShape[]): string {
  const deeper = shapes.filter(({ path }) => path.length > 0).map(({ path }) => `'${path.join(' ')}'`)
  return `# Completions of localtunnels for bash. Use: source <(localtunnels completions bash)
_localtunnels() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command='' next i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${command:+$command }\${COMP_WORDS[i]}"
    case $next in ${deeper.join('|')}) command=$next ;; esac
  done
  local flags='' commands='' files='' folders='' texts='' takes_file=''
  case $command in
${shapes.map(oneCase).join('\n')}
  esac
  case " $files " in *" $before "*) COMPREPLY=($(compgen -f -- "$word")); return ;; esac
  case " $folders " in *" $before "*) COMPREPLY=($(compgen -d -- "$word")); return ;; esac
  case " $texts " in *" $before "*) return ;; esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *)
      COMPREPLY=($(compgen -W "$commands" -- "$word"))
      [ -n "$takes_file" ] && COMPREPLY+=($(compgen -f -- "$word"))
      ;;
  esac
}
complete -o bashdefault -F _localtunnels localtunnels lt
`
}

function oneCase({ path, flags, commands, takesFile }: CommandShape): string {
  const named = (value: string) =>
    flags
      .filter(flag => flag.value === value)
      .flatMap(({ long, short }) => (short === undefined ? [long] : [short, long]))
      .join(' ')
  return `    '${path.join(' ')}')
      flags='${flags.map(({ long }) => long).join(' ')}'
      commands='${commands.map(({ name }) => name).join(' ')}'
      files='${named('file')}' folders='${named('folder')}' texts='${named('text')}' takes_file='${takesFile ? 'yes' : ''}'
      ;;`
}
