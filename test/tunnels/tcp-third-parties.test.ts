// Other people's protocols through a TCP tunnel, spoken by their own programs. Those not installed are skipped.

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { chmod, mkdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { startPrivateService } from '../support/private-service.ts'
import { type Folder, folder, isRoot, type Ran, run, startProgram } from '../support/programs.ts'
import { startTcpTunnel } from '../support/tcp-tunnel.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

const PAGE = await Bun.file(join(import.meta.dir, '../../docs/tcp.md')).text()
/** Last cells of its tables. */
const COMMANDS = PAGE.split('\n').map(line => line.split('|').at(-2)?.trim().replaceAll('`', '') ?? '')

/** The command of docs/tcp.md that begins like this, for this public port of this machine. */
function documented(beginning: string, port: number): [program: string, ...args: string[]] {
  const command = COMMANDS.find(one => one.startsWith(`${beginning} `) || one.startsWith(`${beginning}:`))
  if (command === undefined) throw new Error(`docs/tcp.md has no command ${beginning}`)
  const local = command.replaceAll('user@tunnel.example', login).replaceAll('tunnel.example', '127.0.0.1')
  const [program = '', ...args] = local.replaceAll('20017', `${port}`).split(' ')
  return [program, ...args]
}

/** What it printed, when all went well. */
function printed({ code, out, err }: Ran): string {
  if (code !== 0) throw new Error(`exit ${code}: ${err}${out}`)
  return out.trimEnd()
}

/** Each leads to a service on this machine. */
const WAYS = [
  ['a public port', startTcpTunnel],
  ['a private service', startPrivateService],
] as const

const login = `${printed(await run(['id', '-un']))}@127.0.0.1`

// ── ssh ────────────────────────────────────────────────────────────────────────────────────────────────────────

const SSHD = '/usr/sbin/sshd'
const SSH = [SSHD, 'ssh', 'scp', 'ssh-keygen']
/** Started by root, sshd wants this to be there and empty; the system's own service makes it, where it runs. */
const SSHD_FOLDER = '/run/sshd'

interface SshServer extends AsyncDisposable {
  readonly port: number
  readonly folder: string
  /** What `ssh` and `scp` must be told here: which key, and whom to believe. */
  readonly options: readonly string[]
}

async function startSshd(): Promise<SshServer> {
  const home = await folder('sshd')
  const at = (file: string) => `${home.path}/${file}`
  for (const key of ['host_key', 'login_key'])
    printed(await run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', at(key)]))
  await Bun.write(at('authorized_keys'), Bun.file(at('login_key.pub')))
  await chmod(at('authorized_keys'), 0o600)
  const port = freePort()
  await Bun.write(
    at('config'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host_key')}`,
      `AuthorizedKeysFile ${at('authorized_keys')}`,
      `PidFile ${at('pid')}`,
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PermitRootLogin prohibit-password',
      'StrictModes no',
      'UsePAM no',
      'Subsystem sftp internal-sftp',
    ].join('\n'),
  )
  const makesFolder = isRoot && !existsSync(SSHD_FOLDER)
  if (makesFolder) await mkdir(SSHD_FOLDER, 0o755)
  const sshd = await startProgram([SSHD, '-D', '-e', '-f', at('config')], port)
  const options = ['-i', at('login_key'), '-F', 'none', '-o', 'BatchMode=yes', '-o', 'LogLevel=ERROR']
  const known = ['-o', `UserKnownHostsFile=${at('known_hosts')}`, '-o', 'StrictHostKeyChecking=accept-new']
  return {
    port,
    folder: home.path,
    options: [...options, ...known],
    async [Symbol.asyncDispose]() {
      await sshd[Symbol.asyncDispose]()
      if (makesFolder) await rmdir(SSHD_FOLDER)
      await home[Symbol.asyncDispose]()
    },
  }
}

describeWith(SSH, 'ssh', () => {
  test.each(WAYS)(
    'logs in by key, runs commands, takes megabytes both ways, and tells the exit code: %s',
    async (_way, start) => {
      await using sshd = await startSshd()
      await using live = await start(sshd.port)
      const [program, ...where] = documented('ssh', live.port)
      const ssh = [program, ...sshd.options, ...where]
      expect(printed(await run([...ssh, 'echo from $((20 + 3))']))).toBe('from 23')
      expect((await run([...ssh, 'exit 7'])).code).toBe(7)
      const text = 'a line of text\n'.repeat(300_000)
      expect(printed(await run([...ssh, 'cat'], {}, text))).toBe(text.trimEnd())
      // The command ends when its input does, although its output goes on: half-close through ssh itself.
      expect(printed(await run([...ssh, 'wc -c'], {}, text))).toBe(`${text.length}`)
    },
    60_000,
  )

  test('copies files, and carries several sessions at once', async () => {
    await using sshd = await startSshd()
    await using live = await startTcpTunnel(sshd.port)
    const bytes = crypto.getRandomValues(new Uint8Array(65_536))
    await Bun.write(`${sshd.folder}/here`, bytes)
    const scp = ['scp', ...sshd.options, '-P', `${live.port}`, '-q', `${sshd.folder}/here`]
    printed(await run([...scp, `${login}:${sshd.folder}/there`]))
    expect(await Bun.file(`${sshd.folder}/there`).bytes()).toEqual(bytes)
    const numbers = [1, 2, 3, 4, 5]
    const outputs = await Promise.all(
      numbers.map(number => run(['ssh', ...sshd.options, '-p', `${live.port}`, login, `echo ${number}`])),
    )
    expect(outputs.map(printed)).toEqual(numbers.map(String))
  }, 60_000)
})

// ── git ────────────────────────────────────────────────────────────────────────────────────────────────────────

const GIT = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.com',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.com',
  GIT_TERMINAL_PROMPT: '0',
}

/** A repository with one commit of two files. Returns its last commit. */
async function makeRepository(path: string): Promise<string> {
  await mkdir(path)
  const git = async (...args: readonly string[]) => printed(await run(['git', '-C', path, ...args], GIT))
  await git('init', '-q', '-b', 'main')
  await Bun.write(`${path}/readme`, 'hello\n')
  await Bun.write(`${path}/random`, crypto.getRandomValues(new Uint8Array(65_536)))
  await git('add', '.')
  await git('commit', '-q', '-m', 'one')
  return git('rev-parse', 'HEAD')
}

const headOf = async (path: string) => printed(await run(['git', '-C', path, 'rev-parse', 'HEAD'], GIT))

describeWith(['git'], 'git', () => {
  testWith(
    SSH,
    'clones over ssh',
    async () => {
      await using sshd = await startSshd()
      await using live = await startTcpTunnel(sshd.port)
      const head = await makeRepository(`${sshd.folder}/repository`)
      const GIT_SSH_COMMAND = ['ssh', ...sshd.options].join(' ')
      const clone = documented('git clone ssh', live.port).map(word =>
        word.replace('/srv/repository', `/${sshd.folder}/repository`),
      )
      printed(await run([...clone, '-q', `${sshd.folder}/clone`], { ...GIT, GIT_SSH_COMMAND }))
      expect(await headOf(`${sshd.folder}/clone`)).toBe(head)
    },
    60_000,
  )

  test('clones and fetches over git://', async () => {
    await using files = await folder('git')
    const head = await makeRepository(`${files.path}/repository`)
    const port = freePort()
    const serve = [
      '--reuseaddr',
      '--export-all',
      '--listen=127.0.0.1',
      `--port=${port}`,
      '--log-destination=none',
    ]
    const daemon = [
      'git',
      '-c',
      'safe.directory=*',
      'daemon',
      ...serve,
      `--base-path=${files.path}`,
      files.path,
    ]
    // The daemon is a program of its own behind `git`, which passes the signal on.
    await using _daemon = await startProgram(daemon, port, { ...GIT, GIT_CONFIG_COUNT: '0' })
    await using live = await startTcpTunnel(port)
    printed(await run([...documented('git clone git', live.port), '-q', `${files.path}/clone`], GIT))
    expect(await headOf(`${files.path}/clone`)).toBe(head)
    printed(await run(['git', '-C', `${files.path}/clone`, 'fetch', '-q'], GIT))
  }, 60_000)
})

// ── PostgreSQL ─────────────────────────────────────────────────────────────────────────────────────────────────

const POSTGRES = ['initdb', 'postgres', 'psql', 'pg_isready', 'pgbench', ...(isRoot ? ['setpriv'] : [])]
/** PostgreSQL refuses to be root. */
const AS_POSTGRES = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []

async function startPostgres(files: Folder, port: number): Promise<AsyncDisposable> {
  const data = `${files.path}/data`
  if (isRoot) printed(await run(['chown', 'postgres', files.path]))
  const flags = ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync', '--locale=C', '-E', 'UTF8']
  printed(await run([...AS_POSTGRES, 'initdb', ...flags]))
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${files.path}`,
    'fsync=off',
  ]
  const program = await startProgram(
    [
      ...AS_POSTGRES,
      Bun.which('postgres') ?? 'postgres',
      '-D',
      data,
      ...settings.flatMap(one => ['-c', one]),
    ],
    port,
  )
  // It listens before it lets anybody in.
  while ((await run(['pg_isready', '-h', '127.0.0.1', '-p', `${port}`])).code !== 0);
  return program
}

describeWith(POSTGRES, 'PostgreSQL', () => {
  test.each(WAYS)(
    'psql asks, loads and reads megabytes; pgbench runs with several clients, no transaction failed: %s',
    async (_way, start) => {
      await using files = await folder('postgres')
      const port = freePort()
      await using _postgres = await startPostgres(files, port)
      await using live = await start(port)
      const at = ['-h', '127.0.0.1', '-p', `${live.port}`, '-U', 'postgres']
      const psql = (sql: string, input = '') =>
        run([...documented('psql', live.port), '-X', '-A', '-t', '-c', sql], {}, input)
      expect(printed(await psql('select 20 + 3'))).toBe('23')
      printed(await psql('create table lines (text text)'))
      printed(await psql('copy lines from stdin', 'a line that is loaded\n'.repeat(100_000)))
      expect(printed(await psql('select count(*), sum(length(text)) from lines'))).toBe('100000|2100000')
      expect(printed(await psql('copy lines to stdout'))).toHaveLength(100_000 * 22 - 1)
      printed(await run(['pgbench', ...at, '-q', '-i', '-s', '1', 'postgres']))
      const bench = printed(await run(['pgbench', ...at, '-c', '4', '-t', '50', '-n', 'postgres']))
      expect(bench).toContain('number of transactions actually processed: 200/200')
      expect(bench).toContain('number of failed transactions: 0 ')
    },
    60_000,
  )
})

// ── Redis ──────────────────────────────────────────────────────────────────────────────────────────────────────

describeWith(['redis-server', 'redis-cli'], 'Redis', () => {
  test.each(WAYS)(
    'redis-cli sets and gets, and pipes ten thousand commands: %s',
    async (_way, start) => {
      await using files = await folder('redis')
      const port = freePort()
      const flags = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--dir', files.path]
      await using _redis = await startProgram(['redis-server', ...flags], port)
      await using live = await start(port)
      const cli = documented('redis-cli', live.port)
      expect(printed(await run([...cli, 'set', 'key', 'value']))).toBe('OK')
      expect(printed(await run([...cli, 'get', 'key']))).toBe('value')
      const commands = Array.from({ length: 10_000 }, (_, number) => `SET key${number} ${number}\r\n`).join(
        '',
      )
      expect(printed(await run([...cli, '--pipe'], {}, commands))).toContain('errors: 0, replies: 10000')
      expect(printed(await run([...cli, 'dbsize']))).toBe('10001')
    },
    60_000,
  )
})

// ── iperf3 ─────────────────────────────────────────────────────────────────────────────────────────────────────

describeWith(['iperf3'], 'iperf3', () => {
  test.each([
    ['up', []],
    ['down', ['-R']],
    ['ten streams up', ['-P', '10']],
    ['ten streams down', ['-P', '10', '-R']],
    ['both ways at once', ['--bidir']],
  ])(
    '%s: it runs to its end',
    async (_name, flags) => {
      const port = freePort()
      await using _server = await startProgram(['iperf3', '-s', '-B', '127.0.0.1', '-p', `${port}`], port)
      await using live = await startTcpTunnel(port)
      // The server still deals with the look whether it listens, for a moment.
      let ran: Ran
      do {
        ran = await run([...documented('iperf3', live.port), '-n', '30M', '-J', ...flags])
      } while (ran.out.includes('server is busy'))
      const { end } = JSON.parse(printed(ran))
      // The receiver stops counting when the sender says that it is done: what is still on its way is left out.
      expect(end.sum_received.bytes).toBeGreaterThan(0)
      expect(end.sum_received.bytes).toBeLessThanOrEqual(end.sum_sent.bytes)
    },
    60_000,
  )
})

// ── Bytes by hand ──────────────────────────────────────────────────────────────────────────────────────────────

describeWith(['nc'], 'netcat', () => {
  test('says a line, and reads until the service ends', async () => {
    using service = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket, bytes) => void socket.end(`you said ${bytes.toString()}`) },
    })
    await using live = await startTcpTunnel(service.port)
    const { out } = await run(documented('nc', live.port), {}, 'hello\n')
    expect(out).toBe('you said hello\n')
  })
})

// ── TLS that nobody in between can read ────────────────────────────────────────────────────────────────────────

describeWith(['curl'], 'curl', () => {
  test.each(WAYS)(
    'speaks HTTPS with a service of its own certificate: %s',
    async (_way, start) => {
      await using files = await folder('curl')
      await Bun.write(`${files.path}/ca.pem`, TEST_CERT)
      using app = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        tls: { cert: TEST_CERT, key: TEST_KEY },
        fetch: request => new Response(`${new URL(request.url).pathname}\n`.repeat(50_000)),
      })
      await using live = await start(app.port ?? 0)
      const flags = [
        '-s',
        '-S',
        '--cacert',
        `${files.path}/ca.pem`,
        '--resolve',
        `localhost:${live.port}:127.0.0.1`,
      ]
      const { out } = await run(['curl', ...flags, `https://localhost:${live.port}/secret`])
      expect(out).toBe('/secret\n'.repeat(50_000))
    },
    60_000,
  )
})

// ── FTP ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** At another address the public ports may have the numbers of the service's own. */
const PUBLIC = '127.0.0.2'

/** Ports that follow each other, and that nothing has. */
function freeRange(count: number): readonly number[] {
  for (;;) {
    const first = freePort()
    const ports = Array.from({ length: count }, (_, at) => first + at)
    const isFree = (port: number) => {
      try {
        Bun.listen({ hostname: '0.0.0.0', port, socket: { data() {} } }).stop(true)
        return true
      } catch {
        return false
      }
    }
    if (ports.every(isFree)) return ports
  }
}

describeWith(['vsftpd', 'curl'], 'FTP', () => {
  test('lists, reads and writes files over a range of passive ports with equal numbers', async () => {
    await using files = await folder('ftp')
    await mkdir(`${files.path}/files/in`, { recursive: true })
    await chmod(`${files.path}/files/in`, 0o777)
    await mkdir(`${files.path}/empty`)
    const bytes = crypto.getRandomValues(new Uint8Array(65_536))
    const large = Buffer.concat(Array.from({ length: 64 }, () => bytes))
    await Bun.write(`${files.path}/files/large`, large)
    const port = freePort()
    const passive = freeRange(4)
    const settings = {
      listen: 'YES',
      background: 'NO',
      listen_address: '127.0.0.1',
      listen_port: port,
      anonymous_enable: 'YES',
      no_anon_password: 'YES',
      anon_root: `${files.path}/files`,
      write_enable: 'YES',
      anon_upload_enable: 'YES',
      pasv_min_port: passive[0],
      pasv_max_port: passive.at(-1),
      pasv_address: PUBLIC,
      secure_chroot_dir: `${files.path}/empty`,
      seccomp_sandbox: 'NO',
    }
    const text = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
    await Bun.write(`${files.path}/vsftpd.conf`, text.join(''))
    await using _vsftpd = await startProgram(
      [Bun.which('vsftpd') ?? 'vsftpd', `${files.path}/vsftpd.conf`],
      port,
    )
    await using server = await startServer({ host: PUBLIC, tcpPorts: '1024-65535' })
    await using client = new TunnelClient({ server: `http://${PUBLIC}:${server.port}` })
    const control = await client.tcp({ port, host: '127.0.0.1' })
    for (const one of passive) await client.tcp({ port: one, remotePort: one, host: '127.0.0.1' })
    const url = `ftp://${PUBLIC}:${control.port}`
    const curl = ['curl', '-sS', '--disable-epsv']
    expect(printed(await run([...curl, `${url}/`]))).toContain('large')
    printed(await run([...curl, '-o', `${files.path}/got`, `${url}/large`]))
    expect(await Bun.file(`${files.path}/got`).bytes()).toEqual(new Uint8Array(large))
    printed(await run([...curl, '-T', `${files.path}/got`, `${url}/in/sent`]))
    expect(Bun.file(`${files.path}/files/in/sent`).size).toBe(large.length)
  }, 60_000)
})
