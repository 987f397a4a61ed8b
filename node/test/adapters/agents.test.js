// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/agents.test.js - `belljar hook` and `belljar mcp` in coding agents, as docs/mcp.md says to set them up, with scripted models
 *
 * Each agent is pointed to a server of ours that plays its model: it asks for a shell command, then for our tool `run`, and keeps what the
 * agent sends back.
 */

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BELLJAR = process.env.BELLJAR_BIN;
const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
const BOUND = { timeout: 300_000 };
const COMMAND = 'echo hello > made; cat ~/.ssh/id; exit 3';
const THROUGH = { command: 'echo through $((40 + 2))' };

const events = (list) => list.map((data) => `${data.type ? `event: ${data.type}\n` : ''}data: ${JSON.stringify(data)}\n\n`).join('');

/** What a model says in the agent's own protocol: a call, or (null) that it is done. What it is told is a list of texts. */
const PROTOCOLS = {
  claude: {
    isCall: (path, body) => path.startsWith('/v1/messages') && body.stream && body.tools?.length,
    told: (body) => body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter(({ type }) => type === 'tool_result').map((part) => JSON.stringify(part.content)),
    tools: (body) => body.tools.map(({ name }) => name),
    say: (call, turn) => {
      const block = call ? { type: 'tool_use', id: `toolu_${turn}`, name: call[0], input: {} } : { type: 'text', text: '' };
      const delta = call ? { type: 'input_json_delta', partial_json: JSON.stringify(call[1]) } : { type: 'text_delta', text: 'done' };
      const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
      return events([
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: block },
        { type: 'content_block_delta', index: 0, delta },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
        { type: 'message_stop' },
      ]);
    },
  },
  codex: {
    isCall: (path) => path.endsWith('/responses'),
    told: (body) => body.input.filter(({ type }) => type?.endsWith('_call_output')).map(({ output }) => JSON.stringify(output)),
    tools: (body) => body.tools.flatMap(({ name, type, tools }) => (tools ?? [null]).map((tool) => (tool ? `${name}/${tool.name}` : name ?? type))),
    say: (call, turn) => {
      const [namespace, name] = call?.[0].includes('/') ? call[0].split('/') : [undefined, call?.[0]];
      const item = call
        ? { type: 'function_call', id: `fc_${turn}`, call_id: `call_${turn}`, namespace, name, arguments: JSON.stringify(call[1]) }
        : { type: 'message', role: 'assistant', id: 'm', content: [{ type: 'output_text', text: 'done' }] };
      const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
      return events([
        { type: 'response.created', response: { id: 'r' } },
        { type: 'response.output_item.done', item },
        { type: 'response.completed', response: { id: 'r', usage } },
      ]);
    },
  },
  gemini: {
    isCall: (path, body) => path.includes('streamGenerateContent') && body.tools?.length,
    told: (body) => body.contents.flatMap(({ parts }) => parts).filter((part) => part.functionResponse).map((part) => JSON.stringify(part.functionResponse.response)),
    tools: (body) => body.tools.flatMap(({ functionDeclarations }) => functionDeclarations ?? []).map(({ name }) => name),
    say: (call) => {
      const part = call ? { functionCall: { name: call[0], args: call[1] } } : { text: 'done' };
      return events([{ candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }], usageMetadata: { totalTokenCount: 2 } }]);
    },
  },
};

/** A model that makes the calls of `plan`, one by one: {url, told}. */
async function model(context, { isCall, told, tools, say }, plan) {
  const heard = { told: [], tools: [] };
  const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = parts.length ? JSON.parse(Buffer.concat(parts)) : {};
    if (!isCall(request.url, body)) return response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data":[],"models":[],"input_tokens":1}');
    heard.told = told(body);
    heard.tools = tools(body);
    const turn = heard.told.length;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(say(plan[turn] ?? null, turn));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, heard };
}

const write = (path, text) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};

/** How each is set up and started, and what it calls its shell and our tool. */
const AGENTS = {
  claude: {
    package: '@anthropic-ai/claude-code',
    calls: [['Bash', { command: COMMAND, description: 'x' }], ['mcp__belljar__run', THROUGH]],
    settings: '.claude/settings.json',
    start: ({ work, url }) => {
      write(join(work, 'mcp.json'), JSON.stringify({ mcpServers: { belljar: { command: BELLJAR, args: ['mcp', '-C', work] } } }));
      return {
        args: ['-p', 'go', '--mcp-config', 'mcp.json', '--allowedTools', 'mcp__belljar__run', '--model', 'claude-sonnet-4-5'],
        env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'none', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ENABLE_TOOL_SEARCH: 'false' },
      };
    },
  },
  codex: {
    package: '@openai/codex',
    calls: [['exec_command', { cmd: COMMAND }], ['mcp__belljar/run', THROUGH]],
    settings: '.codex/hooks.json',
    start: ({ work, home, url }) => {
      write(join(home, '.codex/config.toml'), `
        model = "m"
        model_provider = "ours"
        [model_providers.ours]
        name = "ours"
        base_url = "${url}/v1"
        wire_api = "responses"
        [projects."${work}"]
        trust_level = "trusted"
        [mcp_servers.belljar]
        command = "${BELLJAR}"
        args = ["mcp", "-C", "${work}"]
      `);
      return { args: ['exec', '--dangerously-bypass-approvals-and-sandbox', '--dangerously-bypass-hook-trust', 'go'], env: {} };
    },
  },
  gemini: {
    package: '@google/gemini-cli',
    calls: [['run_shell_command', { command: COMMAND, description: 'x' }], ['mcp_belljar_run', THROUGH]],
    settings: '.gemini/settings.json',
    start: ({ work, home, url }) => {
      const servers = { belljar: { command: BELLJAR, args: ['mcp', '-C', work] } };
      write(join(home, '.gemini/settings.json'), JSON.stringify({ mcpServers: servers, security: { auth: { selectedType: 'gemini-api-key' } } }));
      return { args: ['--yolo', '-m', 'gemini-2.5-flash', '-p', 'go'], env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: 'none', GEMINI_CLI_TRUST_WORKSPACE: 'true' } };
    },
  },
};

async function drive(context, name, change = () => {}) {
  const agent = AGENTS[name];
  const base = mkdtempSync(join(tmpdir(), 'belljar-agent-'));
  context.after(() => rmSync(base, { recursive: true, force: true, maxRetries: 5 }));
  const [home, work] = [join(base, 'home'), join(base, 'home/project')];
  write(join(home, '.ssh/id'), 'the secret');
  mkdirSync(work);
  const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: home };
  execFileSync('git', ['init', '-q', work], { env });
  execFileSync(BELLJAR, ['hook', 'install', name, '--yes'], { cwd: work, env, stdio: ['ignore', 'pipe', 'inherit'] });
  change(join(work, agent.settings));
  const { url, heard } = await model(context, PROTOCOLS[name], agent.calls);
  const { args, env: more } = agent.start({ work, home, url });
  const bins = JSON.parse(readFileSync(join(MODULES, agent.package, 'package.json'), 'utf8')).bin;
  const said = await new Promise((resolve) => {
    const program = join(MODULES, '.bin', Object.keys(bins)[0]);
    const child = execFile(program, args, { cwd: work, env: { ...env, ...more }, timeout: 120_000, maxBuffer: 64 << 20 }, (error, stdout, stderr) => resolve(stdout + stderr));
    child.stdin.end();
  });
  assert.equal(heard.told.length, 2, `${heard.tools.join()}\n${heard.told.join('\n')}\n${said}`);
  return { work, told: heard.told };
}

for (const name of Object.keys(AGENTS)) {
  const skip = existsSync(join(MODULES, AGENTS[name].package)) ? false : `needs:${AGENTS[name].package}`;

  test(`${name} runs its commands, and our tools, in jars`, { ...BOUND, skip }, async (context) => {
    const { work, told } = await drive(context, name);
    assert.equal(readFileSync(join(work, 'made'), 'utf8'), 'hello\n');
    assert.match(told[0], /No such file/);
    assert.doesNotMatch(told[0], /the secret/);
    assert.match(told[1], /through 42/);
  });

  test(`${name} does not run a command whose hook fails`, { ...BOUND, skip }, async (context) => {
    const { work, told } = await drive(context, name, (settings) => {
      writeFileSync(settings, readFileSync(settings, 'utf8').replace(`hook ${name}`, `hook ${name} --policy absent.json`));
    });
    assert.ok(!existsSync(join(work, 'made')));
    assert.match(told[0], /cannot open the policy file/);
  });
}
