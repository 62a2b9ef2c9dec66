// A store of certificates that forgets everything when it is closed.

import { SqliteCertificates } from '../../src/stores/sqlite-certificates.ts'

export class MemoryCertificates extends SqliteCertificates {
  constructor() {
    super(':memory:', 'https://authority.test/directory')
  }
}
