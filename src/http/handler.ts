// tmp
export class HandlerConnection { constructor(..._a: any[]) {} received(_b: Uint8Array) {} ended() {} drained() {} aborted() {} }
