// SPDX-License-Identifier: Apache-2.0
/**
 * lib/dispose.js - the name of the method that `await using` calls; older versions of Node have no symbol for it, and compilers use this one
 */

export const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');
