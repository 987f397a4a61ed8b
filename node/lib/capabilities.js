// SPDX-License-Identifier: Apache-2.0
/**
 * lib/capabilities.js - what this host can enforce, as `belljar doctor --json` tells it
 */

import { open } from './engine.js';
import { EngineError, failure } from './errors.js';
import { Kind } from './frames.js';
import { withVersion } from './request.js';

export function capabilities() {
  return new Promise((resolve, reject) => {
    const channel = open(Kind.ASK, withVersion({ what: 'capabilities' }));
    channel.hold();
    channel.onFrame = (kind, payload) => {
      const answer = JSON.parse(payload);
      if (kind === Kind.ANSWER) resolve(answer);
      else reject(failure(answer.error, answer.missing));
    };
    channel.onEnd = (error) => reject(error ?? new EngineError('the engine closed the channel without an answer'));
  });
}
