// Runs a program in an emulated RP2040, clock by clock, and says what its pins did.
//
//     node rp2040.mjs PACKAGE IMAGE LIMIT [ADDRESS...]
//
// PACKAGE: folder of the npm package rp2040js. IMAGE: memory from 0x20000000 on, which is entered at its beginning.
// LIMIT: clocks after which it ends in any case; it ends before that when the program waits for ever. ADDRESS:
// functions whose calls are timed. Prints JSON: {hz, clocks, pins: [[clock, value of all pins], ...],
// calls: [[address, clock of its first instruction, clock behind its return, instructions], ...]}.
//
// rp2040js gives each instruction its clocks (3 or 4 more for peripherals) but lets the PIO run by itself and
// without its delays; here each clock of the processor is one of the PIO.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , folder, image, limit, ...watched] = process.argv;
const { RP2040, LogLevel, ConsoleLogger } = createRequire(import.meta.url)(folder);

const chip = new RP2040();
chip.logger = new ConsoleLogger(LogLevel.Error, true);
chip.sram.set(readFileSync(image));
const core = chip.core;
core.PC = 0x20000000;
core.VTOR = 0x20000000;

let clock = 0;
let changed = false;
const pins = [];
for (const pin of chip.gpio)
  pin.addListener(() => { changed = true; });

function notePins() {
  if (!changed)
    return;
  changed = false;
  let value = 0;
  for (const pin of chip.gpio)
    value |= (pin.outputEnable && pin.outputValue ? 1 : 0) << pin.index;
  pins.push([clock, value]);
}

// The clock of a state machine's next instruction; its own count of clocks, and whether it waited, as last seen.
const machines = chip.pio.flatMap((pio) => pio.machines.map(
  (machine) => ({ pio, machine, due: 0, seen: 0, waited: false })));
for (const pio of chip.pio)
  pio.run = () => {};

function stepMachines() {
  for (const state of machines) {
    const { pio, machine } = state;
    if (!machine.enabled)
      continue;
    if (state.waited && !machine.waiting)  // the processor has just given it a word: the instruction is done, ...
      state.due = clock + 1 + machine.cycles - state.seen;  // ... its delay is not
    else if (machine.waiting || clock < state.due)
      continue;
    else {
      machine.step();
      state.due = clock + Math.max(1, machine.cycles - state.seen);
    }
    state.seen = machine.cycles;
    state.waited = machine.waiting;
    pio.checkChangedPins();
  }
}

const calls = [];
const functions = new Set(watched.map(Number));
let open = null;
let executed = 0;
let rest = 4096;  // clocks for the PIO to finish, when the program has
while (clock < Number(limit) && rest > 0) {
  const at = core.PC & ~1;  // which may be odd in the handler of an exception
  if (functions.has(at) && !open)
    open = [at, clock, core.LR & ~1, executed];
  let cycles = 1;
  if (core.waiting)
    rest--;
  else {
    cycles = core.executeInstruction();
    executed++;
  }
  if (open && (core.PC & ~1) === open[2]) {
    calls.push([open[0], open[1], clock + cycles, executed - open[3]]);
    open = null;
  }
  for (let i = 0; i < cycles; i++) {
    clock++;
    stepMachines();
    notePins();
  }
  chip.clock.tick(cycles * 1e9 / chip.clkSys);
}
console.log(JSON.stringify({ hz: chip.clkSys, clocks: clock, pins, calls }));
