// tmp
import type { Dial } from '../socket.ts'
export const dial: Dial = async (address, handler) => (await import('./bun.ts')).dialBun(address, handler)
