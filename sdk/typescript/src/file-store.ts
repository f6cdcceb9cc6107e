import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Operation, OperationStore } from './store.js';

/** Keeps each operation in a file of its own, in one folder that several processes of one machine may share. */
export class FileStore implements OperationStore {
  constructor(readonly folder: string) {}

  async begin(operation: Operation): Promise<Operation> {
    const written = await this.#write(operation);
    try {
      // A link is made by one process only, and never shows half a file.
      await link(written, this.#file(operation.name));
      await this.#sync();
      return operation;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      await rm(written, { force: true });
    }
    const first = await this.find(operation.name);
    return first ?? this.begin(operation); // forgotten in between
  }

  async find(name: string): Promise<Operation | undefined> {
    return read(this.#file(name));
  }

  async finish(operation: Operation): Promise<void> {
    await rename(await this.#write(operation), this.#file(operation.name));
    await this.#sync();
  }

  async forget(name: string): Promise<void> {
    await rm(this.#file(name), { force: true });
  }

  async unfinished(): Promise<Operation[]> {
    const names = await readdir(this.folder).catch(() => []);
    const all = await Promise.all(names.filter((name) => name.endsWith('.json')).map((name) => read(join(this.folder, name))));
    return all.filter((operation) => operation !== undefined && !operation.answer) as Operation[];
  }

  /** A name may hold what a file's may not, so the file is named after its hash. */
  #file(name: string): string {
    return join(this.folder, `${createHash('sha256').update(name).digest('hex')}.json`);
  }

  /** Writes the operation to a file of another name, and to the disk. */
  async #write(operation: Operation): Promise<string> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const name = join(this.folder, `${randomUUID()}.new`);
    const file = await open(name, 'wx', 0o600);
    try {
      await file.writeFile(JSON.stringify(operation));
      await file.sync();
    } finally {
      await file.close();
    }
    return name;
  }

  /** Brings the folder itself to the disk: else a power cut may take the file's name away. */
  async #sync(): Promise<void> {
    const folder = await open(this.folder, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

async function read(file: string): Promise<Operation | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Operation;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
