// SPDX-License-Identifier: Apache-2.0
// Requests over one connection, one after the other, and many bytes: exchange.js URL 1|2 COUNT MEBIBYTES
// Prints the median of the requests in nanoseconds, and the nanoseconds of the bytes.
'use strict';
const http2 = require('http2');
const https = require('https');
const [url, version, count, mebibytes] = process.argv.slice(2);
const session = version === '2' ? http2.connect(url) : null;
const agent = new https.Agent({keepAlive: true, maxSockets: 1});

const ask = (path) => new Promise((resolve, reject) => {
  let bytes = 0;
  const take = (stream) => stream.on('data', (piece) => { bytes += piece.length; }).on('end', () => resolve(bytes)).on('error', reject);
  if (session) take(session.request({':path': path}));
  else https.get(url + path, {agent}, take).on('error', reject);
});

async function main() {
  const times = [];
  await ask('/hello');
  for (let i = 0; i < Number(count); i++) {
    const begin = process.hrtime.bigint();
    await ask('/hello');
    times.push(Number(process.hrtime.bigint() - begin));
  }
  const begin = process.hrtime.bigint();
  if (await ask(`/big?${mebibytes}`) !== Number(mebibytes) << 20) throw new Error('bytes are missing');
  console.log(times.sort((a, b) => a - b)[times.length >> 1], Number(process.hrtime.bigint() - begin));
  agent.destroy();
  if (session) session.close();
}
main();
