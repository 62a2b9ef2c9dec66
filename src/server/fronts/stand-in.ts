// A connection that is said to come from somewhere else than the socket below it: all else goes to that socket.

import type { AskedCertificate, Endpoints, Socket } from '../../socket.ts'

export abstract class StandIn implements Socket {
  abstract readonly remoteAddress: string
  protected readonly socket: Socket

  constructor(socket: Socket) {
    this.socket = socket
  }

  abstract endpoints(): Endpoints | undefined

  get isCertified(): boolean {
    return this.socket.isCertified === true
  }

  get asked(): AskedCertificate | undefined {
    return this.socket.asked
  }

  get protocol(): string {
    return this.socket.protocol ?? ''
  }

  write(bytes: Uint8Array, start?: number, end?: number): number {
    return this.socket.write(bytes, start, end)
  }

  end(): void {
    this.socket.end()
  }

  terminate(): void {
    this.socket.terminate()
  }

  letGo(): void {
    if (this.socket.letGo === undefined) this.socket.terminate()
    else this.socket.letGo()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }
}
