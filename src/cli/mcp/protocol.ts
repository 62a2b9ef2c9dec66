// The Model Context Protocol on two streams: JSON-RPC, one message per line, with what a server of tools needs. Why
// it is written here: docs/decisions/071-agents.md.

import { optionInvalid, TunnelError } from '../../errors.ts'
import { VERSION } from '../../version.ts'
import { answerText } from './answer.ts'
import { Given, misfit, type Tool } from './tool.ts'

/** The revisions of the protocol with these tools, the newest first. */
const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
/** The maximum length of a message: an edited body, and some room. If exceeded, the connection ends. */
const MAX_LINE_CHARS = 4_194_304
/** The maximum number of calls in progress. An agent makes few. If exceeded: an error. */
const MAX_CALLS = 32

const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const METHOD_NOT_FOUND = -32_601
const INVALID_PARAMS = -32_602
const BUSY = -32_000

type Id = string | number

interface Incoming {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
}

export class AgentProtocol {
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #instructions: string
  readonly #write: (line: string) => void
  readonly #calls = new Map<Id, AbortController>()
  #rest = ''

  constructor(tools: readonly Tool[], instructions: string, write: (line: string) => void) {
    this.#tools = new Map(tools.map(tool => [tool.name, tool]))
    this.#instructions = instructions
    this.#write = write
  }

  /** Called with text of the client, in pieces of any size. Throws `OPTION_INVALID` for a line that is too long. */
  received(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > MAX_LINE_CHARS)
      throw optionInvalid('A message of the agent is longer than 4 MiB.')
    for (const line of lines) if (line.trim() !== '') this.#take(line)
  }

  /** Called when the client is gone: ends the calls in progress. */
  close(): void {
    for (const call of this.#calls.values()) call.abort()
  }

  #take(line: string): void {
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      return this.#fail(null, PARSE_ERROR, 'The line is not JSON.')
    }
    if (typeof message !== 'object' || message === null || Array.isArray(message))
      return this.#fail(null, INVALID_REQUEST, 'A message is an object.')
    const { id, method, params } = message as Incoming // an object, whose fields are checked one by one
    const given = typeof params === 'object' && params !== null ? (params as Record<string, unknown>) : {}
    // A response to a request of ours, of which there are none.
    if (typeof method !== 'string') return undefined
    if (typeof id !== 'string' && typeof id !== 'number') return this.#notified(method, given)
    this.#asked(id, method, given)
  }

  #notified(method: string, { requestId }: Record<string, unknown>): void {
    if (method !== 'notifications/cancelled') return
    if (typeof requestId === 'string' || typeof requestId === 'number') this.#calls.get(requestId)?.abort()
  }

  #asked(id: Id, method: string, params: Record<string, unknown>): void {
    switch (method) {
      case 'initialize': {
        const { protocolVersion } = params
        const wanted = REVISIONS.find(one => one === protocolVersion)
        return this.#answer(id, {
          protocolVersion: wanted ?? REVISIONS[0],
          capabilities: { tools: {} },
          serverInfo: { name: 'localtunnels', version: VERSION },
          instructions: this.#instructions,
        })
      }
      case 'ping':
        return this.#answer(id, {})
      case 'tools/list':
        return this.#answer(id, { tools: [...this.#tools.values()].map(listed) })
      case 'tools/call':
        return this.#call(id, params)
      default:
        return this.#fail(id, METHOD_NOT_FOUND, `There is no method ${method.slice(0, 100)}.`)
    }
  }

  #call(id: Id, { name, arguments: values = {} }: Record<string, unknown>): void {
    const tool = this.#tools.get(String(name))
    if (tool === undefined)
      return this.#fail(id, INVALID_PARAMS, `There is no tool ${String(name).slice(0, 100)}.`)
    if (typeof values !== 'object' || values === null)
      return this.#fail(id, INVALID_PARAMS, 'arguments must be an object.')
    // An object of JSON.
    const given = values as Readonly<Record<string, unknown>>
    const fault = misfit(given, tool)
    // Sent as a result, because the agent can fix it: a protocol error would only reach its program.
    if (fault !== undefined) return this.#answer(id, said(`OPTION_INVALID: ${fault}.`, true))
    if (this.#calls.size >= MAX_CALLS) return this.#fail(id, BUSY, `${MAX_CALLS} calls are in progress.`)
    const call = new AbortController()
    this.#calls.set(id, call)
    void this.#run(id, tool, given, call.signal).finally(() => this.#calls.delete(id))
  }

  async #run(
    id: Id,
    tool: Tool,
    values: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const reply = await tool.call(new Given(values), signal)
      // A cancelled call has no response.
      if (!signal.aborted) this.#answer(id, said(answerText(reply), false))
    } catch (cause) {
      if (signal.aborted) return
      const { code, message } =
        cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
      this.#answer(id, said(answerText({ said: `${code}: ${message}` }), true))
    }
  }

  #answer(id: Id, result: object): void {
    this.#write(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }

  #fail(id: Id | null, code: number, message: string): void {
    this.#write(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
  }
}

function said(text: string, isError: boolean): object {
  return { content: [{ type: 'text', text }], ...(isError && { isError }) }
}

function listed({
  name,
  title,
  description,
  arguments: properties,
  required,
  isReading,
  isOpen,
}: Tool): object {
  return {
    name,
    title,
    description,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    annotations: {
      title,
      readOnlyHint: isReading,
      destructiveHint: false,
      openWorldHint: isOpen === true,
    },
  }
}
