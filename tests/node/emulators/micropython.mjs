// Runs a program in MicroPython, compiled to WebAssembly, and prints what it prints.
//
//     node micropython.mjs PACKAGE FILE... PROGRAM
//
// PACKAGE: module of the npm package @micropython/micropython-webassembly-pyscript. FILE: modules that PROGRAM may
// import, as NAME=PATH.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , folder, ...files] = process.argv;
const program = files.pop();
const { loadMicroPython } = await import(pathToFileURL(`${folder}/micropython.mjs`));
const python = await loadMicroPython({ stdout: (line) => console.log(line), linebuffer: true });
python.FS.mkdir("/modules");
for (const file of files) {
  const [name, path] = file.split("=");
  python.FS.writeFile(`/modules/${name}.py`, readFileSync(path));
}
try {
  python.runPython(`import sys\nsys.path.append("/modules")\n${readFileSync(program, "utf8")}`);
} catch (error) {
  console.error(error.message);  // not the stack: Node.js would print the package's one long line
  process.exitCode = 1;
}
