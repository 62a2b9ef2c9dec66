// What bulk gives way to: small reads of this process, counted where the splicing thread sees them, too.

/** One number. The main thread counts without atomics: a count that is lost between two threads harms nobody. */
export const smallReads: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4))
