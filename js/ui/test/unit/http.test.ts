import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundedText } from '../../src/source/body';
import { answerOf } from '../../src/source/http';
import { ApiError } from '../../src/source/source';
import { TokenKeeper } from '../../src/source/token';

const OK = { ok: true, status: 200 };

function refused(status: number, text: string): ApiError {
  try {
    answerOf('api/v1/x', { ok: status < 300, status }, text);
  } catch (error) {
    if (error instanceof ApiError) return error;
  }
  return assert.fail('it was taken');
}

test('envelopes give their data and remarks', () => {
  const answer = answerOf('x', OK, '{"status":"success","data":[1],"warnings":["w",2],"total":7}');
  assert.deepEqual(answer, { data: [1], warnings: ['w'], infos: [], total: 7 });
});

test('errors keep their type; other answers get one', () => {
  assert.equal(refused(400, '{"status":"error","errorType":"bad_data","error":"no"}').errorType, 'bad_data');
  assert.equal(refused(404, '404 page not found').errorType, 'missing');
  assert.equal(refused(401, 'credentials are missing').errorType, 'unauthorized');
  assert.equal(refused(503, 'too many passwords\nmore').message, 'too many passwords');
  assert.equal(refused(200, '<html>').errorType, 'internal');
  assert.equal(refused(200, '{broken').errorType, 'internal');
  assert.equal(refused(502, '').message, 'api/v1/x is answered with status 502');
});

test('bodies are bounded', async () => {
  const text = 'é'.repeat(1000);
  assert.equal(await boundedText(new Response(text), 2000), text);
  await assert.rejects(boundedText(new Response(text), 1999), { errorType: 'too_large' });
});

test('a token is asked for once by all who wait', async () => {
  const tokens = new TokenKeeper('/');
  const [first, second] = [tokens.ask(undefined), tokens.ask(undefined)];
  assert.ok(tokens.isAsking);
  tokens.give('secret');
  assert.deepEqual(await Promise.all([first, second]), [true, true]);
  assert.equal(tokens.token, 'secret');
  assert.ok(!tokens.isAsking);
  // One that was refused before the new one was there goes on with the new one.
  assert.equal(await tokens.ask(undefined), true);
  const third = tokens.ask('secret');
  tokens.give(undefined);
  assert.equal(await third, false);
  assert.equal(await tokens.ask('secret'), false);
  assert.ok(!tokens.isAsking);
});
