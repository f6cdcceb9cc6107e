import type { Operation, OperationStore } from './store.js';
/**
 * Keeps each operation in a file of its own, in one folder that several processes of one machine may share; those of Paidonce's libraries for
 * other languages, too. The folder has to be on a file system that has hard links.
 */
export declare class FileStore implements OperationStore {
    #private;
    readonly folder: string;
    constructor(folder: string);
    begin(operation: Operation): Promise<Operation>;
    find(name: string): Promise<Operation | undefined>;
    finish(operation: Operation): Promise<void>;
    forget(name: string): Promise<void>;
    unfinished(): Promise<Operation[]>;
}
