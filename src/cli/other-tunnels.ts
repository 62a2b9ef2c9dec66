// Reads command lines of other tunnels: localtunnels of version 0.2.x, localtunnel, ngrok, cloudflared, bore and frp.
// If a flag means the same here, it is translated; otherwise the refusal names our flag.

/** The flags of the command that shares an app, each with ours. An empty list means that the flag is our default. */
const SHARE: Readonly<Record<string, readonly string[]>> = {
  '-s': ['--subdomain'],
  '-l': ['--host'],
  '--local-host': ['--host'],
  '-o': ['--open'],
  '--authtoken': ['--token'],
  '--print-requests': [],
  '--no-manage-hosts': [],
}
/** The flags of `bore local 3000 --to host`. */
const BORE: Readonly<Record<string, readonly string[]>> = {
  '-t': ['--server'],
  '--to': ['--server'],
  '-p': ['--remote-port'],
  '--port': ['--remote-port'],
  '-s': ['--token'],
  '--secret': ['--token'],
}

/** Returns the same command line in our words. `undefined` if it is not one of another tunnel. */
export function ofOtherTunnel(argv: readonly string[]): readonly string[] | undefined {
  const [first = '', second = '', ...rest] = argv
  if (first === 'version' && second === '') return ['--version']
  if (first === 'local' && /^\d+$/.test(second)) return ['tcp', second, ...renamed(rest, BORE)]
  if (first === 'tunnel' && second === '--url') return renamed(rest, SHARE)
  return undefined
}

/** Returns the flags of `localtunnels [port]` in our words. */
export function shareFlags(argv: readonly string[]): readonly string[] {
  return renamed(argv, SHARE)
}

function renamed(
  argv: readonly string[],
  names: Readonly<Record<string, readonly string[]>>,
): readonly string[] {
  return argv.flatMap(word => {
    const [, flag = word, value = ''] = /^(--?[a-z-]+)(=.*)?$/.exec(word) ?? []
    return Object.hasOwn(names, flag) ? (names[flag] ?? []).map(name => name + value) : [word]
  })
}

const NAME = 'For the name use --subdomain <name>, for a host of your own --host-name <host>.'
const SERVER = 'For the server use --server <address>.'
const APP_CA = 'For an authority of the app use --app-ca <file>.'
const APP_INSECURE = 'For an app with any certificate use --app-insecure.'
const APP_PORT = 'For the port of the app use --port <port>.'
const SERVER_FILE =
  'The file of a server is used with: localtunnels server --config <file>, such as server.toml.'
const UP = 'Services of a file are shared with: localtunnels up --config <file>.'

/** The flags that mean something else, or nothing, here. */
const FLAGS: Readonly<Record<string, string>> = {
  '--name': NAME,
  '--sd': NAME,
  '--domain': NAME,
  '--hostname': NAME,
  '--url': NAME,
  '--custom-domain': NAME,
  '--region': `A server is where you run it. ${SERVER}`,
  '--to': SERVER,
  '--server-addr': SERVER,
  '--server_addr': SERVER,
  '--secure': 'The address of the server has the scheme: --server https://tunnel.example.',
  '--verbose': 'Requests are listed anyway; LOCALTUNNELS_DEBUG=1 prints stack traces.',
  '--basic-auth': 'For a password use --password <password>: any user name will do.',
  '--auth': 'For a password use --password <password>: any user name will do.',
  '--oauth': 'Accounts are a guard of a configuration file: docs/guards.md.',
  '--cidr-allow': 'For addresses use --allow <address>.',
  '--cidr-deny': 'For addresses use --deny <address>.',
  '--local-port': APP_PORT,
  '--local_port': APP_PORT,
  '--localPort': APP_PORT,
  '--local-https': 'An app that speaks TLS is shared with: localtunnels https://localhost:<port>.',
  '--allow-invalid-cert': APP_INSECURE,
  '--no-tls-verify': APP_INSECURE,
  '--local-ca': APP_CA,
  '--origin-ca-pool': APP_CA,
  '--origin-server-name': 'For the name in the certificate of the app use --app-server-name <name>.',
  '--all': UP,
  '--local-ip': 'For the host of the app use --host <host>.',
  '--remote-addr': 'For a public port use: localtunnels tcp <port> --remote-port <port>.',
  '--config': UP,
  '-c': UP,
}

/** The commands of other tunnels, by all of their words before flags. */
const COMMANDS: Readonly<Record<string, string>> = {
  'config add-authtoken': 'Keep the token of your server with: localtunnels login <server>.',
  authtoken: 'Keep the token of your server with: localtunnels login <server>.',
  local: 'Share a port with: localtunnels tcp <port> --server <address>.',
  tunnel: 'Share an app with: localtunnels <port>. Services of a file: localtunnels up.',
  frpc: UP,
}

/** Returns what to write in place of a flag of another tunnel. */
export function flagHint(flag: string, command: string): string | undefined {
  if (flag === '-c' && command === 'server') return SERVER_FILE
  return Object.hasOwn(FLAGS, flag) ? FLAGS[flag] : undefined
}

/** Returns what to write in place of a command of another tunnel. */
export function commandHint([first = '', second = '']: readonly string[]): string | undefined {
  return [`${first} ${second}`, first].flatMap(words =>
    Object.hasOwn(COMMANDS, words) ? COMMANDS[words] : [],
  )[0]
}
