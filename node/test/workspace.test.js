// SPDX-License-Identifier: Apache-2.0
/**
 * test/workspace.test.js - what was changed under a layer, and what becomes of it
 */

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { EngineError, Jar, run, StartError, Workspace, WorkspaceError } from '../index.js';
import { folder, test } from './helper.js';

/** A jar over a directory with the file `a`, and a place for workspaces of its own; null where there are only copies. */
async function layered(context, keys = {}) {
  const top = folder(context);
  const work = join(top, 'work');
  const before = process.env.XDG_STATE_HOME;
  mkdirSync(work);
  writeFileSync(join(work, 'a'), '1\n');
  process.env.XDG_STATE_HOME = join(top, 'state');
  context.after(() => {
    if (before === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = before;
  });
  const jar = await Jar.open({ workdir: work, workspace: 'cow', ...keys });
  context.after(() => jar.close());
  if (jar.rung !== 'namespace') return context.skip('needs:userns') ?? {};
  const sh = async (text, where = jar) => (await where.run(text, { shell: true, check: true })).stdout;
  const stores = () => readdirSync(join(top, 'state/belljar/ws')).filter((name) => !name.startsWith('.'));
  return { jar, work, sh, stores };
}

test('changes are seen, picked, applied and dropped, and the jar goes on', async (context) => {
  const { jar, work, sh, stores } = await layered(context);
  if (jar === undefined) return;
  assert.deepEqual(await jar.diff(), []);
  await sh('echo 2 >> a; echo n > new; echo p > /tmp/private');
  const [first, second] = await jar.diff();
  assert.deepEqual([first.path, first.change, second.path, second.change], ['a', 'modified', 'new', 'added']);
  assert.match(await jar.patch(['a']), /^\+2$/m);
  assert.equal(await sh('cat /tmp/private'), 'p\n');
  const applied = await jar.apply(['a']);
  assert.deepEqual([applied.applied, applied.left, jar.workspace.added], [1, 1, 1]);
  assert.equal(readFileSync(join(work, 'a'), 'utf8'), '1\n2\n');
  assert.equal(await sh('test ! -e /tmp/private; cat new'), 'n\n');
  writeFileSync(join(work, 'new'), 'host\n');
  await assert.rejects(jar.apply(), (error) => error instanceof WorkspaceError && error.notApplied[0].path === 'new' && error.notApplied[0].reason === 'conflict');
  await jar.apply(null, { theirs: ['new'] });
  assert.equal(readFileSync(join(work, 'new'), 'utf8'), 'n\n');
  await sh('rm *');
  await jar.discard(['a']);
  assert.equal(await sh('ls'), 'a\n');
  await jar.discard();
  await jar.close();
  assert.deepEqual([readdirSync(work).sort(), stores()], [['a', 'new'], []]);
});

test('there is a way back, and there are several ways on', async (context) => {
  const { jar, work, sh } = await layered(context, { workspace_name: 'attempt' });
  if (jar === undefined) return;
  assert.equal(await jar.checkpoint(), 'origin');
  for (const fork of await jar.fork(2)) {
    assert.equal(await sh('cat a', fork), '1\n');
    await fork.close();
  }
  await sh('echo 2 > a');
  const mark = await jar.checkpoint('two');
  await sh('rm a');
  await jar.rollback(mark);
  const [fork] = await jar.fork(1);
  assert.equal(await sh('cat a; echo 3 > a', fork), '2\n');
  assert.equal(await sh('cat a'), '2\n');
  await fork.apply();
  await fork.close();
  assert.equal(readFileSync(join(work, 'a'), 'utf8'), '3\n');
  const left = await Workspace.open(jar.workspace.id);
  assert.deepEqual([(await left.show()).name, (await left.diff()).map(({ path, conflict }) => [path, conflict])], ['attempt', [['a', true]]]);
  await assert.rejects(left.discard(), /in use/);
  await jar.rollback('origin');
  assert.equal(await sh('cat a'), '3\n');
});

test('what is wrong is said, and the jar lives', async (context) => {
  const { jar, sh } = await layered(context);
  if (jar === undefined) return;
  await sh('echo n > new');
  for (const method of ['apply', 'discard', 'diff']) {
    await assert.rejects(jar[method]([]), RangeError);
    await assert.rejects(jar[method]('new'), TypeError);
  }
  await assert.rejects(jar.fork(0), RangeError);
  await assert.rejects(jar.rollback('nobody'), WorkspaceError);
  assert.equal(await sh('cat new'), 'n\n');
  await assert.rejects(Workspace.open('nobody'), (error) => error instanceof WorkspaceError && error.hint !== null);
  await jar.discard();
  await jar.close();
  await assert.rejects(jar.diff(), EngineError);
  const plain = await Jar.open({ workdir: null });
  context.after(() => plain.close());
  assert.equal(plain.workspace, null);
  await assert.rejects(plain.diff(), /no workspace/);
});

test('a run of its own leaves one that can be found', async (context) => {
  const { jar, work, stores } = await layered(context);
  if (jar === undefined) return;
  const { workspace } = await run('echo n > new', { shell: true, workdir: work, workspace_name: 'left' });
  assert.equal(workspace.added, 1);
  await new Workspace(workspace.id).apply();
  assert.equal(readFileSync(join(work, 'new'), 'utf8'), 'n\n');
  await (await Workspace.open(workspace.id)).discard();
  assert.ok(!stores().includes(workspace.id));
  await assert.rejects(run(['true'], { workdir: work, workspace_name: workspace.id }), StartError);
});
