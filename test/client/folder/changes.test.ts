// Files and folders that change while they are served: a promised length is kept or the answer is cut, never padded.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { appendFile, rename, rm, truncate } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { TunnelClient } from '../../../src/index.ts'
import { folderHandler } from '../../../src/parts/functions/folder/handler.ts'
import { ask } from '../../support/ask.ts'
import { get } from '../../support/exchange.ts'
import { Site, siteTunnel, WAYS } from '../../support/site.ts'
import { deferred, within } from '../../support/within.ts'

const SIZE = 1_000_000
const CONTENT = new Uint8Array(SIZE).fill(0x61)

let site: Site
let folder: string
beforeEach(async () => {
  site = await Site.of({ 'file.bin': CONTENT, 'index.html': 'page' })
  folder = site.folder
})
afterEach(() => site[Symbol.asyncDispose]())

const path = () => join(folder, 'file.bin')

/** What is used of a reader; the platforms' own types differ. */
interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

/** An answer under way: its first piece was read. */
async function begun(): Promise<Reader> {
  const answer = await folderHandler(folder, false)(new Request('http://app.localhost/file.bin'))
  expect(answer.headers.get('content-length')).toBe(String(SIZE))
  const reader: Reader = answer.body!.getReader()
  expect((await reader.read()).value?.length).toBe(65_536)
  return reader
}

async function rest(reader: Reader): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for (let next = await reader.read(); !next.done; next = await reader.read())
    pieces.push(next.value ?? new Uint8Array(0))
  return Buffer.concat(pieces)
}

/** Files of the folder that this process has open; Linux tells. */
function openFiles(): readonly string[] {
  const all = readdirSync('/proc/self/fd').map(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      // The one that the listing itself had open.
      return ''
    }
  })
  return all.filter(name => name.startsWith(folder))
}

/** The handle is closed by another thread: looks again until nothing is open. */
async function allClosed(): Promise<void> {
  if (process.platform !== 'linux') return
  const look = async () => {
    while (openFiles().length > 0) await new Promise(resolve => setImmediate(resolve))
  }
  await within(look(), 'the files to be closed')
}

describe('while it is read', () => {
  test('a file that became shorter is an error', async () => {
    const reader = await begun()
    await truncate(path(), 65_536)
    await assert.rejects(rest(reader), /shorter/)
    await allClosed()
  })

  test('a file that became longer ends where it was to end', async () => {
    const reader = await begun()
    await appendFile(path(), 'more')
    expect((await rest(reader)).equals(Buffer.from(CONTENT.subarray(65_536)))).toBe(true)
    await allClosed()
  })

  test('a file that was replaced, or deleted, is sent as it was', async () => {
    const [first, second] = [await begun(), await begun()]
    await site.write({ 'new.bin': 'new' })
    await rename(join(folder, 'new.bin'), path())
    expect((await rest(first)).equals(Buffer.from(CONTENT.subarray(65_536)))).toBe(true)
    await rm(path())
    expect((await rest(second)).length).toBe(SIZE - 65_536)
    await allClosed()
  })

  test('a visitor who leaves in the middle of a read leaves nothing open', async () => {
    const reader = await begun()
    const read = reader.read()
    await reader.cancel()
    await read
    await allClosed()
  })

  test('answers without a body leave nothing open', async () => {
    const handler = folderHandler(folder, false)
    for (const [method, headers] of [
      ['HEAD', {}],
      ['GET', { 'if-none-match': '*' }],
      ['GET', { 'if-match': '"x"' }],
      ['GET', { range: 'bytes=9999999-' }],
    ] as const) {
      await handler(new Request('http://app.localhost/file.bin', { method, headers }))
    }
    expect(process.platform === 'linux' ? openFiles() : []).toEqual([])
  })
})

/** A visitor that reads only when told to, and counts. */
class SlowVisitor {
  readonly socket: Socket
  bytes = 0
  readonly ended = deferred<boolean>()
  readonly begun = deferred()

  constructor(port: number, request: string) {
    this.socket = connect(port, '127.0.0.1', () => this.socket.write(request))
    this.socket.on('data', (piece: Buffer) => {
      if (this.bytes === 0) this.socket.pause()
      this.bytes += piece.length
      this.begun.resolve()
    })
    this.socket.on('error', () => {})
    this.socket.on('close', hadError => this.ended.resolve(hadError))
  }
}

describe('through a tunnel', () => {
  // The JSON wire takes the whole file before it sends a byte of it, and has no place for this much.
  test.each(['streams', 'Node'] as const)('%s: a file that became shorter is a cut answer', async way => {
    // More than fits into all that lies between. Only its length is on the disk.
    const size = 200_000_000
    await truncate(path(), size)
    await using tunnel = await siteTunnel(way, folder)
    const visitor = new SlowVisitor(tunnel.port, get(tunnel.host, '/file.bin'))
    await within(visitor.begun.promise, 'the answer to begin')
    await truncate(path(), 10)
    visitor.socket.resume()
    await within(visitor.ended.promise, 'the answer to be cut')
    expect(visitor.bytes).toBeGreaterThan(0)
    expect(visitor.bytes).toBeLessThan(size)
  })

  test('a visitor who leaves a download leaves no file open', async () => {
    await truncate(path(), 200_000_000)
    await using tunnel = await siteTunnel('streams', folder)
    const visitor = new SlowVisitor(tunnel.port, get(tunnel.host, '/file.bin'))
    await within(visitor.begun.promise, 'the answer to begin')
    if (process.platform === 'linux') expect(openFiles()).toEqual([path()])
    visitor.socket.destroy()
    await allClosed()
  })

  test.each(WAYS)('%s: a folder that vanishes is 404 and heals when it is back', async way => {
    await using tunnel = await siteTunnel(way, folder, true)
    const page = async (name = '/') =>
      ask(tunnel.port, tunnel.host, { path: name, headers: { accept: 'text/html' } })
    expect(await page()).toMatchObject({ status: 200, body: 'page' })
    await rm(folder, { recursive: true })
    expect((await page()).status).toBe(404)
    expect((await page('/somewhere')).status).toBe(404)
    await site.write({ 'index.html': 'built again' })
    expect(await page()).toMatchObject({ status: 200, body: 'built again' })
    await rm(folder, { recursive: true })
    // A file where the folder was.
    await site.write({ '../site': 'file' })
    expect((await page()).status).toBe(404)
  })
})

describe('from the beginning', () => {
  test.each([
    ['', 'there is no such folder'],
    ['nowhere', 'there is no such folder'],
    ['file.bin', 'it is not a folder'],
    // Runtimes differ in what they say.
    ['file.bin/below', 'Cannot serve'],
  ])('%j is refused before anything is dialled', (name, says) => {
    const options = { server: 'http://127.0.0.1:1', folder: name && join(folder, name) }
    expect(() => new TunnelClient(options)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(says) }),
    )
  })

  test('a folder and something else, or spa alone, is refused', () => {
    for (const options of [
      { folder, port: 3000 },
      { folder, fetch: () => new Response() },
      { spa: true, port: 3000 },
    ]) {
      expect(() => new TunnelClient(options)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
  })

  test('a folder given relative to the working directory stays the same when the program goes elsewhere', async () => {
    const before = process.cwd()
    try {
      process.chdir(folder)
      const handler = folderHandler('.', false)
      process.chdir(before)
      const answer = await handler(new Request('http://app.localhost/'))
      expect(await answer.text()).toBe('page')
    } finally {
      process.chdir(before)
    }
  })
})
