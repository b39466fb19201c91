//! Reads the bytes of an ITM from standard input with the crate `itm`. Prints a line for each packet that is an event:
//! its id, a blank, and its payload in hexadecimal, the lowest byte first. The last line is the number of the other
//! packets.

use itm::cortex_m::VectActive;
use itm::{Decoder, DecoderOptions, ExceptionAction, MemoryAccessType, TracePacket};
use std::io::{self, BufWriter, Read, Write};

fn main() {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).expect("standard input");
    let mut out = BufWriter::new(io::stdout().lock());
    let mut others = 0;
    let mut event = |id: u8, payload: &[u8]| {
        let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{id} {hex}").expect("standard output");
    };
    for packet in Decoder::new(bytes.as_slice(), DecoderOptions { ignore_eof: false }).singles() {
        match packet.expect("a packet") {
            TracePacket::Instrumentation { port, payload } => event(port, &payload),
            TracePacket::Overflow => event(64, &[]),
            TracePacket::EventCounterWrap { cyc, fold, lsu, sleep, exc, cpi } => event(
                32,
                &[[cpi, exc, sleep, lsu, fold, cyc]
                    .iter()
                    .enumerate()
                    .fold(0, |sum, (bit, &set)| sum | u8::from(set) << bit)],
            ),
            TracePacket::ExceptionTrace { exception, action } => {
                let number = match exception {
                    VectActive::Interrupt { irqn } => irqn + 16,
                    _ => 0,
                };
                let action = match action {
                    ExceptionAction::Entered => 1,
                    ExceptionAction::Exited => 2,
                    ExceptionAction::Returned => 3,
                };
                event(33, &(number | action << 12).to_le_bytes())
            }
            TracePacket::PCSample { pc } => match pc {
                Some(pc) => event(34, &pc.to_le_bytes()),
                None => event(34, &[0]),
            },
            TracePacket::DataTracePC { comparator, pc } => event(40 | comparator << 1, &pc.to_le_bytes()),
            TracePacket::DataTraceAddress { comparator, data } => event(41 | comparator << 1, &data),
            TracePacket::DataTraceValue { comparator, access_type, value } => {
                event(48 | comparator << 1 | u8::from(access_type == MemoryAccessType::Write), &value)
            }
            _ => others += 1,
        }
    }
    writeln!(out, "{others}").expect("standard output");
}
