// Breaks the real code in one place after the other, in a copy, and looks for a test of documented.test.ts or found.test.ts, or a number
// whose simulation notices:
// bun test/simulation/mutations.ts [--seeds 300] [--only 'lower epoch']. Each has to be found.

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

interface Mutation {
  readonly name: string
  readonly file: string
  readonly from: string
  readonly to: string
}

const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a lower epoch does not give up when another server is granted the name',
    file: 'src/parts/cluster/holds.ts',
    from: 'if (epoch < hold.epoch) return\n    this.#lose(name)',
    to: 'if (epoch < hold.epoch) return',
  },
  {
    name: 'the directory takes back a hold of a lower epoch',
    file: 'src/directories/memory.ts',
    from: '(!record.isShared && record.epoch >= hold.epoch)',
    to: '(!record.isShared && record.epoch < hold.epoch)',
  },
  {
    name: 'a new grant is not published',
    file: 'src/directories/memory.ts',
    from: 'this.#tell(granted.name, node, epoch)',
    to: '',
  },
  {
    name: 'what is remembered of a name stays behind an answer that it moved',
    file: 'src/parts/cluster/places.ts',
    from: 'this.#known.delete(name)\n    this.#asked.delete(name)',
    to: '',
  },
  {
    name: 'a lease is as short as the time without visitors',
    file: 'src/directories/memory.ts',
    from: 'leaseUntil: now + leaseMs',
    to: 'leaseUntil: now + nodeMs / 4',
  },
  {
    name: 'holds are not restored to a directory that lost its data',
    file: 'src/parts/cluster/cluster.ts',
    from: 'if (isDoubtful || isDue || this.#holds.isBehind) await this.#restore()',
    to: 'if (isDue) await this.#restore()',
  },
  {
    name: 'a claim whose answer was lost is not released',
    file: 'src/parts/cluster/holds.ts',
    from: 'if (isAsked)',
    to: 'if (isAsked && name === "")',
  },
  {
    name: 'a name is not given back when its lease is over',
    file: 'src/parts/cluster/cluster.ts',
    from: 'this.#holds.release(name)',
    to: 'void name',
  },
  {
    name: 'a request that another server may have taken is sent once more',
    file: 'src/parts/cluster/peer-channel.ts',
    from: 'const delivered = this.#isGreeted ? stream.sentBytes : 0',
    to: 'const delivered = 0',
  },
  {
    name: 'a request whose tunnel comes back counts twice',
    file: 'src/server/routing/routed-request.ts',
    from: 'if (!isFirst) return',
    to: '',
  },
  {
    name: 'what is under way to a server that is frozen is never cut',
    file: 'src/parts/cluster/peers.ts',
    from: '(isIdle || peer.isSilent)',
    to: 'isIdle',
  },
  {
    name: 'connections between servers are never found dead',
    file: 'src/parts/cluster/joining.ts',
    from: 'socket.keepAlive?.(PEER_SILENCE_MS)',
    to: '',
  },
]

/** Steps that are given, and what has to come of them. */
const DIRECTED = ['found', 'documented'].map(name => `test/simulation/${name}.test.ts`)

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '300' }, only: { type: 'string', default: '' } },
})
const root = join(import.meta.dir, '../..')
let missed = 0
for (const { name, file, from, to } of MUTATIONS.filter(({ name }) => name.includes(values.only))) {
  const copy = await mkdtemp(join(tmpdir(), 'localtunnels-mutation-'))
  try {
    for (const folder of ['src', 'test/simulation', 'test/support', 'package.json', 'tsconfig.json'])
      await cp(join(root, folder), join(copy, folder), { recursive: true })
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
    const text = await readFile(join(copy, file), 'utf8')
    if (text.split(from).length !== 2) throw new Error(`${file} does not have this once: ${from}`)
    await writeFile(
      join(copy, file),
      text.replace(from, () => to),
    )
    const found =
      (await firstLine(copy, ['test', ...DIRECTED], /^\(fail\) .*$/m)) ??
      (await firstLine(
        copy,
        ['test/simulation/run.ts', '--seeds', values.seeds, '--first'],
        /^seed \d+ breaks: .*$/m,
      ))
    if (found === undefined) missed++
    console.log(`${name}: ${found?.slice(0, 160) ?? `not found by ${values.seeds} seeds`}`)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}
process.exitCode = missed > 0 ? 1 : 0

/** Of what a program of Bun prints. */
async function firstLine(cwd: string, command: readonly string[], like: RegExp): Promise<string | undefined> {
  const run = Bun.spawn([process.execPath, ...command], { cwd, stdout: 'pipe', stderr: 'pipe' })
  const texts = [run.stdout, run.stderr].map(stream => new Response(stream).text())
  const [output, errors] = await Promise.all([...texts, run.exited])
  return like.exec(`${output}\n${errors}`)?.[0]
}
