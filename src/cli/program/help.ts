// The layout of --help: commands before options, both under headings. Environment variables are in docs/cli.md and the manual.

import { type Command, Help, type Option } from 'commander'

/** The options that `localtunnels --help` shows, in order. `localtunnels http --help` shows all. */
const COMMON: readonly string[] = [
  '--port',
  '--serve',
  '--server',
  '--token',
  '--subdomain',
  '--password',
  '--inspect',
  '--json',
  '--quiet',
  '--version',
  '--help',
]

const standard = new Help()

export const LAYOUT: Partial<Help> = {
  optionDescription: option => option.description,
  subcommandTerm: command => `${command.name()} ${argumentsOf(command)}`.trim(),
  visibleOptions(command) {
    const all = standard.visibleOptions(command)
    if (command.parent !== null) return all
    return COMMON.flatMap(name => all.filter(option => option.long === name))
  },
  formatHelp(command, helper) {
    const width = helper.padWidth(command, helper)
    const item = (term: string, text: string) => helper.formatItem(term, width, text, helper)
    const list = (heading: string, items: string[]) => helper.formatItemList(heading, items, helper)
    const commands = helper.groupItems(
      [...command.commands],
      helper.visibleCommands(command),
      one => one.helpGroup() || 'Commands:',
    )
    const options = helper.groupItems([...command.options], helper.visibleOptions(command), option =>
      headingOf(option, command),
    )
    const lines = [
      `Usage: ${helper.commandUsage(command)}`,
      '',
      helper.boxWrap(helper.commandDescription(command), helper.helpWidth ?? 80),
      '',
      ...list(
        'Arguments:',
        helper.visibleArguments(command).map(one => item(one.name(), one.description)),
      ),
    ]
    for (const [heading, group] of commands)
      lines.push(
        ...list(
          heading,
          group.map(one => item(helper.subcommandTerm(one), helper.subcommandDescription(one))),
        ),
      )
    for (const [heading, group] of options)
      lines.push(
        ...list(
          heading,
          group.map(option => item(option.flags, helper.optionDescription(option))),
        ),
      )
    return lines.join('\n')
  },
}

/** Returns the heading of an option. An option without a heading, such as --help, is in the last group. */
function headingOf(option: Option, command: Command): string {
  if (command.parent === null) return 'Common options (all of them: localtunnels http --help):'
  return option.helpGroupHeading ?? command.options.at(-1)?.helpGroupHeading ?? 'Options:'
}

function argumentsOf(command: Command): string {
  return command.registeredArguments
    .map(one => {
      const name = one.variadic ? `${one.name()}...` : one.name()
      return one.required ? `<${name}>` : `[${name}]`
    })
    .join(' ')
}
