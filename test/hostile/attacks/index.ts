// All attacks, in the order of the table.

import type { Attack } from '../scene/attack.ts'
import { attacks as clientHellos } from './client-hellos.ts'
import { attacks as controlFloods } from './control-floods.ts'
import { attacks as costlyAnswers } from './costly-answers.ts'
import { attacks as datagrams } from './datagrams.ts'
import { attacks as descriptors } from './descriptors.ts'
import { attacks as dyingThreads } from './dying-threads.ts'
import { attacks as frozenClient } from './frozen-client.ts'
import { attacks as halfUpgrades } from './half-upgrades.ts'
import { attacks as hoarding } from './hoarding.ts'
import { attacks as http2 } from './http2.ts'
import { attacks as idleConnections } from './idle-connections.ts'
import { attacks as jsonTexts } from './json-texts.ts'
import { attacks as nameTakeover } from './name-takeover.ts'
import { attacks as newConnections } from './new-connections.ts'
import { attacks as pings } from './pings.ts'
import { attacks as pipelining } from './pipelining.ts'
import { attacks as plannedEnds } from './planned-ends.ts'
import { attacks as resets } from './resets.ts'
import { attacks as restart } from './restart.ts'
import { attacks as slowBodies } from './slow-bodies.ts'
import { attacks as slowHeads } from './slow-heads.ts'
import { attacks as slowReaders } from './slow-readers.ts'
import { attacks as tlsCheck } from './tls-check.ts'
import { attacks as tokenGuessing } from './token-guessing.ts'

/** What the same visitors see when nothing happens: the other rows are to be read against it. */
const calm: Attack = { name: 'calm', does: 'none: honest visitors alone' }

export const ATTACKS: readonly Attack[] = [
  calm,
  ...pipelining,
  ...slowHeads,
  ...slowBodies,
  ...slowReaders,
  ...costlyAnswers,
  ...halfUpgrades,
  ...idleConnections,
  ...newConnections,
  ...descriptors,
  ...clientHellos,
  ...datagrams,
  ...tlsCheck,
  ...http2,
  ...pings,
  ...controlFloods,
  ...tokenGuessing,
  ...jsonTexts,
  ...hoarding,
  ...nameTakeover,
  ...resets,
  ...dyingThreads,
  ...frozenClient,
  ...plannedEnds,
  ...restart,
]
