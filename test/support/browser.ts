// Chromium without a window, driven by its own protocol (CDP) over a WebSocket.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { within } from './within.ts'

interface Reply {
  readonly id?: number
  readonly method?: string
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

export class Browser implements AsyncDisposable {
  readonly #process: Bun.Subprocess
  readonly #profile: string
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #loaded: (() => void) | undefined
  #lastId = 0

  private constructor(process: Bun.Subprocess, profile: string, socket: WebSocket) {
    this.#process = process
    this.#profile = profile
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      const reply: Reply = JSON.parse(String(data))
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply)
      if (reply.method === 'Page.loadEventFired') this.#loaded?.()
    }
  }

  /** `flags`: besides those that tests always need. `home`: where its certificates are, of which it shows any that a server asks for. */
  static async start(flags: readonly string[] = [], home?: string): Promise<Browser> {
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
    const port = await within(portOf(child.stderr), 'the browser to start')
    const targets: unknown = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()
    const pages = targets as readonly { readonly type: string; readonly webSocketDebuggerUrl: string }[] // as CDP has it
    const page = pages.find(({ type }) => type === 'page')
    const socket = new WebSocket(page?.webSocketDebuggerUrl ?? '')
    await within(new Promise(resolve => socket.addEventListener('open', resolve)), 'the page of the browser')
    const browser = new Browser(child, profile, socket)
    await browser.#call('Page.enable')
    return browser
  }

  /** Opens a URL, and waits until its page is loaded. */
  async open(url: string): Promise<void> {
    const loaded = this.#load()
    await this.#call('Page.navigate', { url })
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
    const { result } = await this.#call('Runtime.evaluate', { expression, awaitPromise: true })
    const { value, description } = (result ?? {}) as {
      readonly value?: unknown
      readonly description?: string
    } // a RemoteObject
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? description ?? '')
  }

  /** Forgets all cookies: the next page is opened by another person. */
  async forget(): Promise<void> {
    await this.#call('Storage.clearCookies')
  }

  /** As a screen of this width has it. */
  async narrow(width: number): Promise<void> {
    const screen = { width, height: 640, deviceScaleFactor: 1, mobile: true }
    await this.#call('Emulation.setDeviceMetricsOverride', screen)
  }

  /** Headings, links and what takes input, sorted, as a screen reader names them. */
  async names(): Promise<readonly string[]> {
    const { nodes } = await this.#call('Accessibility.getFullAXTree')
    const all = nodes as readonly Record<'role' | 'name', { readonly value: string } | undefined>[] // as CDP has it
    return all
      .map(({ role, name }) => `${role?.value} ${name?.value}`)
      .filter(line => /^(?:heading|link|button|textbox) /.test(line))
      .sort()
  }

  #load(): Promise<void> {
    return within(
      new Promise(resolve => {
        this.#loaded = resolve
      }),
      'a page to be loaded',
    )
  }

  async #call(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#lastId
    const reply = new Promise<Reply>(resolve => this.#waiting.set(id, resolve))
    this.#socket.send(JSON.stringify({ id, method, params }))
    const { result = {}, error } = await within(reply, method)
    this.#waiting.delete(id)
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    this.#process.kill()
    await this.#process.exited
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Chromium says where it listens, once. */
async function portOf(stderr: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  for await (const bytes of stderr) {
    text += new TextDecoder().decode(bytes)
    const port = /ws:\/\/127\.0\.0\.1:(\d+)\//.exec(text)?.[1]
    if (port !== undefined) return port
  }
  throw new Error(`no browser: ${text.slice(0, 500)}`)
}
