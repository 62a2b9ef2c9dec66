// Tokens of clients: made here, shown once, given another secret, taken back.

import { moment } from '../parts/format.ts'
import { api, type TokenRow, type TokenSecret } from './api.ts'
import { act, secret, tokens } from './state.ts'
import { ask, Table, TIMES, typed } from './tables.tsx'

async function shown(made: Promise<TokenSecret>): Promise<void> {
  secret.value = await made
}

export function Tokens() {
  const add = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault()
    const form = event.currentTarget
    const name = typed(form, 'name')
    const names = typed(form, 'names')
      .split(/[\s,]+/)
      .filter(one => one !== '')
    const forSeconds = Number(typed(form, 'seconds'))
    const wish = { name, ...(names.length > 0 && { names }), ...(forSeconds > 0 && { forSeconds }) }
    void act(
      shown(api.addToken(wish)).then(() => form.reset()),
      `${name} is made.`,
    )
  }
  const { value } = tokens
  if (value?.isKept === false) return <p class="empty">This server keeps no tokens: --tokens-db.</p>
  return (
    <>
      <form class="form" onSubmit={add}>
        <input
          name="name"
          required
          maxLength={64}
          placeholder="laptop-of-anna"
          aria-label="Name of the token"
        />
        <input name="names" placeholder="all names, or: shop ci-*" aria-label="Subdomains that it opens" />
        <select name="seconds" aria-label="For how long">
          {TIMES.map(([seconds, text]) => (
            <option key={seconds} value={seconds}>
              {text}
            </option>
          ))}
        </select>
        <button type="submit" class="main">
          Make
        </button>
      </form>
      {secret.value !== undefined && (
        <p class="secret" role="alert">
          {secret.value.name}: <code>{secret.value.token}</code>{' '}
          <span class="quiet">This is the only time that it is shown.</span>
        </p>
      )}
      <Table
        label="Tokens"
        heads={['Name', 'Opens', 'Made', 'Last used', 'Ends', '']}
        count={value?.tokens.length}
        empty="There is no token yet."
      >
        {value?.tokens.map((row: TokenRow) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            <td>{scopeText(row.scope)}</td>
            <td>{moment(row.createdAt)}</td>
            <td>{row.lastUsedAt === undefined ? 'never' : moment(row.lastUsedAt)}</td>
            <td>{row.expiresAt === undefined ? '' : moment(row.expiresAt)}</td>
            <td class="doing">
              <button
                type="button"
                onClick={() =>
                  ask(`Give ${row.name} another secret? The old one opens nothing any more.`, () =>
                    act(shown(api.rotateToken(row.name)), `${row.name} has another secret.`),
                  )
                }
              >
                Rotate
              </button>
              <button
                type="button"
                onClick={() =>
                  ask(`Take ${row.name} back? Its tunnels close at once.`, () =>
                    act(api.revokeToken(row.name), `${row.name} opens nothing any more.`),
                  )
                }
              >
                Revoke
              </button>
            </td>
          </tr>
        ))}
      </Table>
    </>
  )
}

function scopeText(scope: object): string {
  const parts = Object.entries(scope).map(([name, value]) =>
    value === true ? name : `${name} ${Array.isArray(value) ? value.join(' ') : JSON.stringify(value)}`,
  )
  return parts.length === 0 ? 'everything' : parts.join(', ')
}
