// SPDX-License-Identifier: Apache-2.0
/**
 * lib/ask.js - onAsk: the program is asked about connections that no rule decides
 */

// As the engine numbers them.
const ANSWERS = new Map([['deny', 0], ['once', 1], ['run', 2]]);

/** Ask; the number of the answer. Whatever goes wrong means no. */
export async function answerTo(event, onAsk) {
  const { kind, host, port, address, rule, timeout_ms } = event;
  let answer;
  try {
    answer = await onAsk({ kind, host, port, address, rule, timeout: timeout_ms / 1000 });
  } catch (error) {
    process.emitWarning(`onAsk threw ${error}: the answer is 'deny'`, 'BelljarWarning');
    return ANSWERS.get('deny');
  }
  if (!ANSWERS.has(answer)) process.emitWarning(`onAsk must give 'once', 'run' or 'deny': the answer is 'deny'`, 'BelljarWarning');
  return ANSWERS.get(answer) ?? ANSWERS.get('deny');
}
