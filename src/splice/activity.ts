// What bulk gives way to: small reads of this process, counted where the splicing thread sees them, too.

/** One number, written by the main thread only. */
export const smallReads: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4))
