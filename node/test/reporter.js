// SPDX-License-Identifier: Apache-2.0
/**
 * test/reporter.js - what tests/runner reads: "ok NAME", "FAIL NAME" behind its reasons, "skip NAME REASON"
 */

import { inspect } from 'node:util';

const oneWord = (name) => name.trim().replaceAll(/\s+/g, '_');

export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type === 'test:pass' && data.skip !== undefined) {
      yield `skip ${oneWord(data.name)} ${data.skip === true ? '' : data.skip}\n`;
    } else if (type === 'test:pass') {
      yield `ok ${oneWord(data.name)}\n`;
    } else if (type === 'test:fail') {
      yield `${inspect(data.details?.error?.cause ?? data.details?.error, { depth: 4 })}\nFAIL ${oneWord(data.name)}\n`;
    } else if (type === 'test:stdout' || type === 'test:stderr') {
      yield data.message;
    }
  }
}
