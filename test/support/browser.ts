// Chromium without a window, driven by its own protocol (CDP) over a WebSocket.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { within } from './within.ts'

/** Failure only: a page may be compiled first, on a busy machine. */
const DEADLINE_MS = 60_000

interface Reply {
  readonly id?: number
  readonly method?: string
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** A process of Chromium. */
export class Chromium implements AsyncDisposable {
  readonly #process: Bun.Subprocess
  readonly #profile: string
  readonly #whole: Protocol
  readonly #origin: string

  private constructor(process: Bun.Subprocess, profile: string, whole: Protocol, origin: string) {
    this.#process = process
    this.#profile = profile
    this.#whole = whole
    this.#origin = origin
  }

  /** `flags`: besides those that tests always need. `home`: where its certificates are, of which it shows any that a server asks for. */
  static async start(flags: readonly string[] = [], home?: string): Promise<Chromium> {
    const profile = await mkdtemp(join(tmpdir(), 'localtunnels-browser-'))
    // What the policy AutoSelectCertificateForUrls would set for all users of the machine.
    const choices = ['{"pattern":"*","filter":{}}']
    const preferences = { profile: { managed_auto_select_certificate_for_urls: choices } }
    if (home !== undefined)
      await Bun.write(join(profile, 'Default', 'Preferences'), JSON.stringify(preferences))
    const child = Bun.spawn(
      [
        'chromium',
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--remote-debugging-port=0',
        `--user-data-dir=${profile}`,
        ...flags,
        'about:blank',
      ],
      {
        stdout: 'ignore',
        stderr: 'pipe',
        ...(home !== undefined && { env: { ...process.env, HOME: home, XDG_DATA_HOME: join(home, 'data') } }),
      },
    )
    const url = await within(urlOf(child.stderr), 'the browser to start', DEADLINE_MS)
    return new Chromium(child, profile, await Protocol.at(url), new URL(url).host)
  }

  /** The page that it starts with. Its end is that of the process. */
  async first(): Promise<Browser> {
    const targets: unknown = await (await fetch(`http://${this.#origin}/json/list`)).json()
    const pages = targets as readonly { readonly type: string; readonly id: string }[] // as CDP has it
    const id = pages.find(({ type }) => type === 'page')?.id
    if (id === undefined) throw new Error('the browser starts without a page')
    return this.#page(id, () => this[Symbol.asyncDispose]())
  }

  /** Somebody who was never here: a page with cookies and a cache of its own. */
  async visitor(): Promise<Browser> {
    const { browserContextId } = await this.#whole.call('Target.createBrowserContext')
    const { targetId } = await this.#whole.call('Target.createTarget', {
      url: 'about:blank',
      browserContextId,
    })
    return this.#page(String(targetId), () =>
      this.#whole.call('Target.disposeBrowserContext', { browserContextId }),
    )
  }

  async #page(id: string, end: () => Promise<unknown>): Promise<Browser> {
    const page = await Protocol.at(`ws://${this.#origin}/devtools/page/${id}`)
    await page.call('Page.enable')
    return new Browser(page, end)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#whole.close()
    this.#process.kill()
    await this.#process.exited
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** CDP with the whole browser, or with a page. */
class Protocol {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  loaded: () => void = () => {}
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      const reply: Reply = JSON.parse(String(data))
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply)
      if (reply.method === 'Page.loadEventFired') this.loaded()
    }
  }

  static async at(url: string): Promise<Protocol> {
    const socket = new WebSocket(url)
    const opened = new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', () => reject(new Error(`the browser refuses ${url}`)))
    })
    await within(opened, 'the browser to answer', DEADLINE_MS)
    return new Protocol(socket)
  }

  async call(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#lastId
    const reply = new Promise<Reply>(resolve => this.#waiting.set(id, resolve))
    this.#socket.send(JSON.stringify({ id, method, params }))
    const { result = {}, error } = await within(reply, method, DEADLINE_MS)
    this.#waiting.delete(id)
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }

  close(): void {
    this.#socket.close()
  }
}

/** A page, with what belongs to it. */
export class Browser implements AsyncDisposable {
  readonly #page: Protocol
  readonly #end: () => Promise<unknown>

  constructor(page: Protocol, end: () => Promise<unknown>) {
    this.#page = page
    this.#end = end
  }

  /** A page in a process of its own. */
  static async start(...options: Parameters<typeof Chromium.start>): Promise<Browser> {
    return (await Chromium.start(...options)).first()
  }

  /** Opens a URL, and waits until its page is loaded. */
  async open(url: string): Promise<void> {
    const loaded = this.#load()
    await this.#page.call('Page.navigate', { url })
    await loaded
  }

  /** Runs a script that leads to another page, and waits until that is loaded. */
  async follow(script: string): Promise<void> {
    const loaded = this.#load()
    await this.run(script)
    await loaded
  }

  /** What a script evaluates to, as text. */
  async run(expression: string): Promise<string> {
    const { result } = await this.#page.call('Runtime.evaluate', { expression, awaitPromise: true })
    const { value, description } = (result ?? {}) as {
      readonly value?: unknown
      readonly description?: string
    } // a RemoteObject
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? description ?? '')
  }

  /** Forgets all cookies: the next page is opened by another person. */
  async forget(): Promise<void> {
    await this.#page.call('Storage.clearCookies')
  }

  /** As a screen of this width has it. */
  async narrow(width: number): Promise<void> {
    const screen = { width, height: 640, deviceScaleFactor: 1, mobile: true }
    await this.#page.call('Emulation.setDeviceMetricsOverride', screen)
  }

  /** Headings, links and what takes input, sorted, as a screen reader names them. */
  async names(): Promise<readonly string[]> {
    const { nodes } = await this.#page.call('Accessibility.getFullAXTree')
    const all = nodes as readonly Record<'role' | 'name', { readonly value: string } | undefined>[] // as CDP has it
    return all
      .map(({ role, name }) => `${role?.value} ${name?.value}`)
      .filter(line => /^(?:heading|link|button|textbox) /.test(line))
      .sort()
  }

  #load(): Promise<void> {
    const loaded = new Promise<void>(resolve => {
      this.#page.loaded = resolve
    })
    return within(loaded, 'a page to be loaded', DEADLINE_MS)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#page.close()
    await this.#end()
  }
}

/** Chromium says where it listens, once. */
async function urlOf(stderr: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  for await (const bytes of stderr) {
    text += new TextDecoder().decode(bytes)
    const url = /ws:\/\/127\.0\.0\.1:\d+\/\S+(?=\s)/.exec(text)?.[0]
    if (url !== undefined) return url
  }
  throw new Error(`no browser: ${text.slice(0, 500)}`)
}
