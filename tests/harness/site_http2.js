// SPDX-License-Identifier: Apache-2.0
// A server of HTTP/2 in the world of harness/internet.py, with the site's certificate: site_http2.js FOLDER ADDRESS PORT
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http2 = require('http2');
const [folder, address, port] = process.argv.slice(2);
// Whoever measures has no log.
const note = fs.existsSync(`${folder}/log`) ? (line) => fs.appendFileSync(`${folder}/log`, `${line}\n`) : () => {};
const zeros = Buffer.alloc(1 << 16);
const server = http2.createSecureServer({
  key: fs.readFileSync(`${folder}/site.key`), cert: fs.readFileSync(`${folder}/site.crt`), allowHTTP1: true,
});
server.on('request', (request, response) => {
  const host = request.headers[':authority'] || request.headers.host;
  note(`${request.method} ${host} ${request.url} ${request.httpVersion}`);
  const [path, query] = request.url.split('?');
  if (path === '/echo') {
    response.writeHead(200);
    request.pipe(response);
  } else if (path === '/seen') {
    response.end(JSON.stringify(request.headers));
  } else if (path === '/big') {
    let left = Number(query) << 4;
    const more = () => {
      while (left > 0 && response.write(zeros)) left--;
      if (left-- <= 0) response.end();
    };
    response.on('drain', more);
    more();
  } else if (path === '/drip') {
    // The same in the head, in frames of three bytes, and in a trailer.
    const said = `<${request.headers.authorization || ''}>`;
    response.writeHead(200, {'x-said': said});
    response.addTrailers({'x-end': said});
    const write = (at) => (at < said.length ? response.write(said.slice(at, at + 3), () => write(at + 3)) : response.end());
    write(0);
  } else {
    response.end(`hello from ${host} over ${request.httpVersion}\n`);
  }
});
// A WebSocket that sends back what it gets, in small frames if it begins with CUT; or an answer that never ends.
server.on('upgrade', (request, socket) => {
  note(`${request.method} ${request.headers.host} ${request.url} upgrade`);
  socket.on('error', () => {});
  if (request.url === '/endless') {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nX: ');
    const more = () => { while (!socket.destroyed && socket.write('a'.repeat(4096))); };
    socket.on('drain', more);
    more();
    return;
  }
  const accept = crypto.createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `X-Said: ${request.headers.authorization || ''}\r\nSec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`);
  socket.on('data', (frame) => {
    const text = frame.subarray(6).map((byte, at) => byte ^ frame[2 + at % 4]);
    const said = Buffer.from(text.toString().replaceAll('AUTH', request.headers.authorization));
    if (text.toString().startsWith('CUT')) {
      // One message in frames of five bytes each, with a ping between any two.
      for (let at = 0; at < said.length; at += 5) {
        const part = said.subarray(at, at + 5);
        const head = [(at ? 0 : 1) | (at + 5 < said.length ? 0 : 0x80), part.length];
        socket.write(Buffer.concat([Buffer.from(head), part, Buffer.from(at + 5 < said.length ? [0x89, 0] : [])]));
      }
      return;
    }
    socket.write(Buffer.concat([Buffer.from([0x81, said.length]), said]));
  });
});
server.listen(Number(port), address, () => console.log('ready'));
