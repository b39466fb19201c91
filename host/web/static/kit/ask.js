// What the server is asked, and told.

// The run that this page shows: the server refuses requests about another one.
let run = null;
export function of(name) { run = name; }

export function wanted(values) {
  return new URLSearchParams(run === null ? values : { ...values, of: run });
}

export async function ask(path, values = {}, method = 'GET') {
  const answer = await fetch(`${path}?${wanted(values)}`, { method });
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

// A request with a text.
export async function tell(path, text) {
  const answer = await fetch(`${path}?${wanted({})}`, { method: 'POST', body: text });
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

// An answer to a text of a user, which may be refused.
export async function answered(answer) {
  const found = await answer.json();
  if (found?.refused) throw new Error(found.refused);
  return found;
}

// The browser saves an answer as a file, under the server's name for it.
export async function save(answer) {
  const name = /filename="([^"]+)"/.exec(answer.headers.get('Content-Disposition'))[1];
  const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(await answer.blob()), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

export function reason(error) {
  return error.message === 'Failed to fetch' ? 'no connection: is hypermon still running?' : error.message;
}

export async function unpacked(answer) {
  const buffer = await answer.arrayBuffer(), size = new DataView(buffer).getUint32(0, true);
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size))), at = 4 + size;
  const numbers = json.numbers ?? (buffer.byteLength - at) / 4;
  return { ...json, counts: new Float32Array(buffer, at, numbers), shares: new Uint8Array(buffer, at + numbers * 4) };
}
