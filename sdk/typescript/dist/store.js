/** Keeps operations as long as the program runs: for tests, and for callers who keep the key elsewhere. */
export class MemoryStore {
    #kept = new Map();
    async begin(operation) {
        const kept = this.#kept.get(operation.name) ?? operation;
        this.#kept.set(operation.name, kept);
        return kept;
    }
    async find(name) {
        return this.#kept.get(name);
    }
    async finish(operation) {
        this.#kept.set(operation.name, operation);
    }
    async forget(name) {
        this.#kept.delete(name);
    }
    async unfinished() {
        return [...this.#kept.values()].filter((operation) => !operation.answer);
    }
}
