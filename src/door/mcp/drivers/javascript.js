// SPDX-License-Identifier: Apache-2.0
// Inside a jar: run pieces of JavaScript that arrive at descriptor 3, and answer each at descriptor 4.
// A piece is its number, a newline, its text and a NUL; an answer is JSON with that number, and a NUL. A shell has put output to its place before.
// The console of Node knows how to keep const and let from piece to piece, and how to wait for `await`.
const fs = require('fs');
const repl = require('repl');
const util = require('util');
const { PassThrough, Writable } = require('stream');

const nowhere = new Writable({ write(_piece, _encoding, done) { done(); } });
const server = repl.start({ prompt: '', input: new PassThrough(), output: nowhere, useGlobal: true, terminal: false });
Object.assign(globalThis, { require, console });

function answer(value, error) {
  const data = Buffer.from(JSON.stringify({ number, value, error, images: [] }) + '\0');
  for (let at = 0; at < data.length;) at += fs.writeSync(4, data, at);
}

function words(error) {
  const text = error && error.stack ? String(error.stack) : util.inspect(error);
  return text.split('\n').filter((line) => !/node:(repl|vm|domain|internal|events)|\[eval\]/.test(line)).join('\n').slice(0, 20000);
}

let waiting = Buffer.alloc(0);
let isBusy = false;
let number = 0;
let fail = () => {};
// Uncaught errors come here, during a piece or after it; the console would only print it.
if (server._domain) server._domain.removeAllListeners('error').on('error', (error) => fail(error));
process.on('uncaughtException', (error) => fail(error));

function next() {
  const end = waiting.indexOf(0);
  if (isBusy || end < 0) return;
  const piece = waiting.subarray(0, end).toString();
  const text = piece.slice(piece.indexOf('\n') + 1);
  number = parseInt(piece, 10);
  waiting = waiting.subarray(end + 1);
  isBusy = true;
  const done = (error, value) => {
    if (!isBusy) return;
    isBusy = false;
    if (error) answer(null, words(error.err || error));
    else answer(value === undefined ? null : util.inspect(value, { depth: 4, maxArrayLength: 200 }).slice(0, 100000), null);
    setImmediate(next);
  };
  fail = done;
  server.eval(text + '\n', server.context, 'cell', done);
}

const input = fs.createReadStream(null, { fd: 3 });
input.on('data', (piece) => { waiting = Buffer.concat([waiting, piece]); next(); });
input.on('end', () => process.exit(0));
process.on('unhandledRejection', (error) => fail(error));
