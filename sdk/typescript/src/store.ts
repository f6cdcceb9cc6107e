/** A logical operation: its key, made once, and the very bytes of its first attempt. */
export interface Operation {
  /** Your name for it, such as `order-1001/charge`. */
  name: string;
  key: string;
  method: 'POST';
  path: string;
  body: string;
  /** When it was begun, in milliseconds since 1970. */
  begun: number;
  /** The answer, once there is one that is final. */
  answer?: { status: number; requestId: string; body: string };
}

/**
 * Where operations are kept. What `begin` returns must survive a crash of the program: the first attempt is sent only after it.
 */
export interface OperationStore {
  /** Keeps the operation unless there is one of its name already, and returns the one that is kept. */
  begin(operation: Operation): Promise<Operation>;
  find(name: string): Promise<Operation | undefined>;
  /** Replaces the operation of its name. */
  finish(operation: Operation): Promise<void>;
  forget(name: string): Promise<void>;
  /** All that have no answer yet. */
  unfinished(): Promise<Operation[]>;
}

/** Keeps operations as long as the program runs: for tests, and for callers who keep the key elsewhere. */
export class MemoryStore implements OperationStore {
  readonly #kept = new Map<string, Operation>();

  async begin(operation: Operation): Promise<Operation> {
    const kept = this.#kept.get(operation.name) ?? operation;
    this.#kept.set(operation.name, kept);
    return kept;
  }

  async find(name: string): Promise<Operation | undefined> {
    return this.#kept.get(name);
  }

  async finish(operation: Operation): Promise<void> {
    this.#kept.set(operation.name, operation);
  }

  async forget(name: string): Promise<void> {
    this.#kept.delete(name);
  }

  async unfinished(): Promise<Operation[]> {
    return [...this.#kept.values()].filter((operation) => !operation.answer);
  }
}
