import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
/**
 * Keeps each operation in a file of its own, in one folder that several processes of one machine may share; those of Paidonce's libraries for
 * other languages, too. The folder has to be on a file system that has hard links.
 */
export class FileStore {
    folder;
    constructor(folder) {
        this.folder = resolve(folder);
    }
    async begin(operation) {
        const written = await this.#write(operation);
        try {
            for (;;) {
                // A link is made by one process only, and never shows half a file.
                const made = await link(written, this.#file(operation.name)).then(() => operation, unless('EEXIST'));
                const kept = made ?? (await this.find(operation.name));
                if (!kept)
                    continue; // forgotten in between
                // Also when another process made the link: perhaps it has not come to this yet, and we are about to send.
                await sync(this.folder);
                return kept;
            }
        }
        finally {
            await rm(written, { force: true });
        }
    }
    async find(name) {
        return read(this.#file(name));
    }
    async finish(operation) {
        await rename(await this.#write(operation), this.#file(operation.name));
        await sync(this.folder);
    }
    async forget(name) {
        await rm(this.#file(name), { force: true });
    }
    async unfinished() {
        const names = (await readdir(this.folder).catch(unless('ENOENT'))) ?? [];
        const all = await Promise.all(names.filter((name) => name.endsWith('.json')).map((name) => read(join(this.folder, name))));
        return all.filter((operation) => operation !== undefined && !operation.answer);
    }
    /** A name may hold what a file's may not, so the file is named after its hash. */
    #file(name) {
        return join(this.folder, `${createHash('sha256').update(name).digest('hex')}.json`);
    }
    /** Writes the operation to a file of another name, and to the disk. */
    async #write(operation) {
        await make(this.folder);
        const name = join(this.folder, `${randomUUID()}.new`);
        const file = await open(name, 'wx', 0o600);
        try {
            await file.writeFile(JSON.stringify(operation));
            await file.sync();
        }
        finally {
            await file.close();
        }
        return name;
    }
}
async function read(file) {
    const text = await readFile(file, 'utf8').catch(unless('ENOENT'));
    return text === undefined ? undefined : JSON.parse(text);
}
/** Makes a folder with those above it, and brings their names to the disk: else a power cut may take the folder away. */
async function make(folder) {
    if (await stat(folder).catch(unless('ENOENT')))
        return;
    const above = dirname(folder);
    await make(above);
    await mkdir(folder, { mode: 0o700 }).catch(unless('EEXIST'));
    await sync(above);
}
/** Brings a folder itself to the disk: else a power cut may take a file's name away. Windows does so by itself, and has no such call. */
async function sync(folder) {
    if (process.platform === 'win32')
        return;
    const opened = await open(folder, 'r');
    try {
        await opened.sync();
    }
    finally {
        await opened.close();
    }
}
/** Makes undefined of the error that is expected. */
const unless = (code) => (error) => {
    if (error.code !== code)
        throw error;
};
