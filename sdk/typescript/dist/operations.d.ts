import type { ChargeParams } from './generated/types.gen.js';
import type { Exchange, Exchanger } from './retry.js';
import type { Operation, OperationStore } from './store.js';
export interface Result<T> {
    data: T;
    status: number;
    headers: Headers;
    requestId: string | undefined;
    /** Whether the answer was stored by an earlier request: at the server, or here. */
    replayed: boolean;
}
/**
 * The client's half of the contract: a key is made once for each operation and kept before the first attempt, and each attempt sends the
 * bytes of the first, also after a crash.
 */
export declare class Operations {
    #private;
    constructor(exchanger: Exchanger, store: OperationStore, maxAgeMs: number);
    /** Begins the operation, or goes on with it when it was begun. */
    run<T>(name: string, path: string, params: object): Promise<Result<T>>;
    /** Goes on with an operation that was begun, without its parameters. Raises UnknownOperationError when it was not. */
    resume<T>(name: string): Promise<Result<T>>;
    /** Operations without an answer: resume each of them when your program starts. */
    unfinished(): Promise<Operation[]>;
    /** Lets the name be used anew, under a new key. Only for an operation whose outcome you know. */
    forget(name: string): Promise<void>;
}
/** Raises the error of an exchange that has one. */
export declare function resultOf<T>({ status, headers, data, error }: Exchange): Result<T>;
/** An operation to be kept by `begin` of a store, such as one within the transaction that makes your order; `resume` sends it later. */
export declare function newOperation(name: string, path: string, params: object): Operation;
/**
 * Keeps a charge to be made and sends nothing: with a store within the transaction that makes your order, the order and its payment are begun
 * together or not at all. Resume it after the commit. Raises OperationMismatchError when the name was begun with another request.
 */
export declare function beginCharge(store: OperationStore, name: string, params: ChargeParams): Promise<void>;
/** JSON with the members in one order, so that the same parameters are the same bytes however the caller wrote them. */
export declare function canonical(value: unknown): string;
