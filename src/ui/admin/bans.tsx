// The bans.

import { api, type BanRow } from './api.ts'
import { Times, typed } from './forms.tsx'
import { act, isAdding, place, seen } from './state.ts'
import { AddButton, Bar, type Column, fits, Table } from './table.tsx'
import { Ago, day, Zero } from './words.tsx'

const COLUMNS: readonly Column<BanRow>[] = [
  {
    head: 'Blocked',
    cell: ({ value, kind }) => (
      <>
        <span class="name">{value}</span> <span class="tag">{kind}</span>
      </>
    ),
  },
  { head: 'Reason', cell: ({ reason }) => <span class="wrap">{reason}</span> },
  { head: 'Since', class: 'num', cell: ({ since }) => <Ago time={since} /> },
  {
    head: 'Until',
    class: 'num',
    cell: ({ until }) => (until === undefined ? <Zero text="without end" /> : day(until)),
  },
]

export function Bans() {
  const value = seen('bans')
  return (
    <>
      <Bar title="Bans" placeholder="Address, name or reason">
        <AddButton text="New ban" />
      </Bar>
      {isAdding.value && <Add />}
      <Table
        label="Bans"
        columns={COLUMNS}
        rows={value?.bans.filter(({ value: what, reason }) => fits(what, reason))}
        keyOf={({ id }) => String(id)}
        empty={place.value.q === '' ? 'Nothing is blocked.' : `No ban fits “${place.value.q}”.`}
        actions={({ id, value: what }) => (
          <button
            type="button"
            class="btn bare"
            aria-label={`Lift the ban of ${what}`}
            onClick={() => void act(api.removeBan(id), `${what} is not blocked any more.`)}
          >
            Lift
          </button>
        )}
      />
    </>
  )
}

function Add() {
  const add = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault()
    const form = event.currentTarget
    const forSeconds = Number(typed(form, 'seconds'))
    const ban = {
      kind: typed(form, 'kind'),
      value: typed(form, 'value'),
      reason: typed(form, 'reason'),
      ...(forSeconds > 0 && { forSeconds }),
    }
    void act(
      api.ban(ban).then(() => form.reset()),
      `${ban.value} is blocked.`,
    )
  }
  return (
    <form class="bar form" onSubmit={add}>
      <select class="input" name="kind" aria-label="What is blocked">
        <option value="address">address or network</option>
        <option value="tunnel">name of a tunnel</option>
      </select>
      <input
        class="input"
        name="value"
        required
        maxLength={255}
        placeholder="192.0.2.0/24"
        aria-label="Address, network or name"
      />
      <input class="input" name="reason" maxLength={1_000} placeholder="why" aria-label="Why" />
      <Times />
      <button type="submit" class="btn main">
        Block
      </button>
    </form>
  )
}
