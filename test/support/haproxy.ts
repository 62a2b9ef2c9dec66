// HAProxy and nginx for tests: a configuration of the test's own, ready when the promise is, gone when the test is.

import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'

export interface Daemon extends AsyncDisposable {
  /** The port that its configuration names as `PORT`. */
  readonly port: number
}

/** `PORT` and `FOLDER` in the configuration are replaced. Timeouts and mode are for the configuration to say. */
export async function startHaproxy(configuration: string): Promise<Daemon> {
  return startDaemon(
    `global\n  maxconn 200\n${configuration}`,
    folder => ['haproxy', '-D', '-q', '-p', `${folder}/pid`, '-f', `${folder}/conf`], // prettier-ignore
  )
}

/** The same with the inside of `http { … }` of nginx. */
export async function startNginx(http: string): Promise<Daemon> {
  const configuration = `
    worker_processes 1;
    pid FOLDER/pid;
    error_log FOLDER/error.log;
    events { worker_connections 128; }
    http { access_log off; ${http} }`
  return startDaemon(configuration, folder => ['nginx', '-q', '-p', folder, '-c', `${folder}/conf`])
}

/** Both programs go into the background once they listen. */
async function startDaemon(
  configuration: string,
  command: (folder: string) => readonly string[],
): Promise<Daemon> {
  const folder = await mkdtemp(`${tmpdir()}/localtunnels-daemon-`)
  // nginx started by root reads as nobody.
  await chmod(folder, 0o755)
  const port = freePort()
  await Bun.write(`${folder}/conf`, configuration.replaceAll('PORT', `${port}`).replaceAll('FOLDER', folder))
  const child = Bun.spawn([...command(folder)], { stdout: 'ignore', stderr: Bun.file(`${folder}/said`) })
  const code = await child.exited
  if (code !== 0)
    throw new Error(`${command('')[0]} ended with ${code}: ${await readFile(`${folder}/said`, 'utf8')}`)
  const pid = Number(await readFile(`${folder}/pid`, 'utf8'))
  return {
    port,
    async [Symbol.asyncDispose]() {
      process.kill(pid, 'SIGTERM')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Neither program tells which port it got for 0. */
function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}
