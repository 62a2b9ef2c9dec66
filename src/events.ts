// A typed event emitter whose owner no listener can break: an error of a listener is reported, not propagated.

type Listener<Payload> = (payload: Payload) => void

/**
 * An emitter with `on`, `off` and `once`, typed by a map from event name to payload. Unlike in `node:events`, an
 * `error` event without a listener is dropped, and a listener that throws cannot break the emitting code.
 */
export class Events<EventMap extends object> {
  readonly #listeners = new Map<keyof EventMap, Set<Listener<never>>>()

  /** Calls `listener` for every `event` from now on. Returns the function that stops it. */
  on<Name extends keyof EventMap>(event: Name, listener: Listener<EventMap[Name]>): () => void {
    const listeners = this.#listeners.get(event) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(event, listeners)
    this.listenersChanged(event)
    return () => this.off(event, listener)
  }

  /** Calls `listener` for the next `event` only. Returns the function that stops it. */
  once<Name extends keyof EventMap>(event: Name, listener: Listener<EventMap[Name]>): () => void {
    const stop = this.on(event, payload => {
      stop()
      listener(payload)
    })
    return stop
  }

  /** Stops calling `listener` for `event`. */
  off<Name extends keyof EventMap>(event: Name, listener: Listener<EventMap[Name]>): void {
    this.#listeners.get(event)?.delete(listener)
    this.listenersChanged(event)
  }

  /** Whether there is a listener. Without one, the emitter need not build a payload. */
  protected hasListeners(event: keyof EventMap): boolean {
    return (this.#listeners.get(event)?.size ?? 0) > 0
  }

  protected emit<Name extends keyof EventMap>(event: Name, payload: EventMap[Name]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        // `on` only adds listeners with this event's payload type.
        const outcome: unknown = (listener as Listener<EventMap[Name]>)(payload)
        // The listener is async: without this, its rejection would end the process.
        if (outcome instanceof Promise) outcome.catch(cause => reportThrown(event, cause))
      } catch (cause) {
        reportThrown(event, cause)
      }
    }
  }

  /** Called before the first listener of an event is added, and after the last one is removed. */
  protected listenersChanged(_event: keyof EventMap): void {}
}

/** Reports a bug of the embedding program where its author looks, without affecting other listeners. */
function reportThrown(event: PropertyKey, cause: unknown): void {
  console.error(`localtunnels: a listener for "${String(event)}" threw`, cause)
}
