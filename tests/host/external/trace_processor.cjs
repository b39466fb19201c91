// Perfetto's own trace processor, which is made for a worker of a browser, under Node.js.
//   node trace_processor.cjs FOLDER REQUESTS REPLIES
// FOLDER has engine_bundle.js and the .wasm files; REQUESTS and REPLIES are files of TraceProcessorRpcStream.
const fs = require('fs'), path = require('path'), vm = require('vm');
const [folder, requests, replies] = process.argv.slice(2);

class XMLHttpRequest {
  open(method, url) { this.file = path.join(folder, path.basename(url)); }
  send() {
    this.response = new Uint8Array(fs.readFileSync(this.file)).buffer;
    this.status = 200;
  }
}

const worker = {
  XMLHttpRequest, WebAssembly, URL, TextDecoder, TextEncoder, Uint8Array, ArrayBuffer, TypeError, RangeError,
  WorkerGlobalScope: function () {}, importScripts: () => {}, location: { href: 'file:///' }, navigator: {},
  console, crypto, performance, setTimeout, clearTimeout,
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), worker);

const answers = [];
const port = { postMessage: (bytes) => answers.push(Buffer.from(bytes)) };
worker.onmessage({ data: port });
const ask = () => {
  try {
    port.onmessage({ data: new Uint8Array(fs.readFileSync(requests)) });
  } catch (error) {
    // Until the WebAssembly has been compiled.
    if (process.uptime() > 60 || answers.length) throw error;
    setTimeout(ask, 50);
    return;
  }
  fs.writeFileSync(replies, Buffer.concat(answers));
};
setTimeout(ask, 50);
