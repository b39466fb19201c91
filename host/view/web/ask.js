// What the server is asked.

export const by = (id) => document.getElementById(id);

export async function ask(path, values = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(values)}`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

export function reason(error) {
  return error.message === 'Failed to fetch' ? 'no connection: is hypermon view still running?' : error.message;
}

export async function unpacked(answer) {
  const buffer = await answer.arrayBuffer(), size = new DataView(buffer).getUint32(0, true);
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size))), at = 4 + size;
  const numbers = json.numbers ?? (buffer.byteLength - at) / 4;
  return { ...json, counts: new Float32Array(buffer, at, numbers), shares: new Uint8Array(buffer, at + numbers * 4) };
}
