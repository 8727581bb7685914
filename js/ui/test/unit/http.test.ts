import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundedText } from '../../src/source/body';
import { answerOf, plainOf } from '../../src/source/http';
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

test('answers without an envelope, and their refusals', () => {
  const refusal = (status: number, body: string): string => {
    try {
      plainOf('api/v2/silences', { ok: status < 300, status }, body);
    } catch (error) {
      if (error instanceof ApiError) return `${error.errorType}: ${error.message}`;
    }
    return assert.fail('it was taken');
  };
  assert.deepEqual(plainOf('x', OK, '[]'), []);
  assert.equal(plainOf('x', OK, ''), undefined);
  assert.equal(refusal(200, '<html>'), 'internal: api/v2/silences is not answered as by Prometheus\' API');
  assert.equal(refusal(400, '"end time can\'t be in the past"'), 'bad_data: end time can\'t be in the past');
  assert.equal(refusal(422, '{"code":602,"message":"comment in body is required"}'), 'bad_data: comment in body is required');
  assert.equal(refusal(404, '"silence not found"'), 'not_found: silence not found');
  assert.equal(refusal(404, '404 page not found\n'), 'missing: the node has no api/v2/silences');
  assert.equal(refusal(401, 'credentials are missing or wrong\n'), 'unauthorized: credentials are missing or wrong');
  assert.equal(refusal(403, 'the request comes from a page of another origin\n'), 'forbidden: the request comes from a page of another origin');
  assert.equal(refusal(500, '"the disk is full"'), 'internal: the disk is full');
  assert.equal(refusal(503, '{"status":"error","errorType":"unavailable","error":"starting"}'), 'unavailable: starting');
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

test('a token for changes is asked for again, and is not that for reading', async () => {
  const [read, admin] = [new TokenKeeper('/'), new TokenKeeper('/', 'admin')];
  read.give('reader');
  assert.equal(admin.token, undefined);
  const first = admin.ask(undefined);
  admin.give(undefined);
  assert.equal(await first, false);
  const second = admin.ask(undefined);
  assert.ok(admin.isAsking);
  admin.give('right');
  assert.equal(await second, true);
  assert.equal(read.token, 'reader');
});
