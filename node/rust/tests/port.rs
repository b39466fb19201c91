//! What a port does to its pins, read as plainly as possible.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use embedded_hal::digital::{ErrorType, OutputPin};
use hypermon_node::{Edges, Error, Port, PAYLOAD_MAX};

type Record = Rc<RefCell<Vec<(usize, bool)>>>;

/// A pin that records the levels that it is set to.
struct Pin(usize, Record);

impl ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.1.borrow_mut().push((self.0, false));
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.1.borrow_mut().push((self.0, true));
        Ok(())
    }
}

fn port<const BITS: usize>(edges: Edges) -> (Port<Pin, Pin, BITS>, Record) {
    let record = Record::default();
    let data = core::array::from_fn(|bit| Pin(bit, record.clone()));
    let port = Port::new(data, Pin(BITS, record.clone()), edges).unwrap();
    assert_eq!(record.borrow().len(), BITS + 1);
    assert!(record.borrow().iter().all(|&(_, level)| !level));
    (port, record)
}

/// The data at each active edge. With one edge, no data pin changes while the strobe is 1.
fn nibbles(record: &Record, bits: usize, edges: Edges) -> Vec<u8> {
    let (mut value, mut out) = (0u16, Vec::new());
    for &(pin, level) in record.borrow().iter() {
        let before = value;
        value = value & !(1 << pin) | u16::from(level) << pin;
        if pin == bits {
            if value != before && (level || edges == Edges::Both) {
                out.push((value & ((1 << bits) - 1)) as u8);
            }
        } else if edges == Edges::Rising {
            assert_eq!(before >> bits, 0, "data change while the strobe is 1");
        }
    }
    out
}

/// The events in nibbles, or in the writes of a port of 8 bits; nothing may be left over.
fn events(writes: &[u8], bits: usize) -> Vec<(u8, Vec<u8>)> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < writes.len() {
        let length = writes[at] as usize;
        at += 1;
        let mut bytes = Vec::new();
        for _ in 0..length {
            bytes.push(if bits == 8 {
                writes[at]
            } else {
                writes[at] | writes[at + 1] << 4
            });
            at += 8 / bits;
        }
        if let Some((&id, payload)) = bytes.split_first() {
            out.push((id, payload.to_vec()));
        }
    }
    out
}

fn check<const BITS: usize>(edges: Edges) {
    let (mut port, record) = port::<BITS>(edges);
    let mut sent = Vec::new();
    for length in 0..=PAYLOAD_MAX as u8 {
        let payload: Vec<u8> = (0..length)
            .map(|k| 31u8.wrapping_mul(k).wrapping_add(length))
            .collect();
        port.event(0xf0 - length, &payload).unwrap();
        port.nibble(0).unwrap();
        sent.push((0xf0 - length, payload));
    }
    assert_eq!(events(&nibbles(&record, BITS, edges), BITS), sent);
    record.borrow_mut().clear();
    assert_eq!(port.event(1, &[0; PAYLOAD_MAX + 1]), Err(Error::TooLong));
    assert!(record.borrow().is_empty());
}

#[test]
fn events_of_every_length() {
    for edges in [Edges::Rising, Edges::Both] {
        check::<4>(edges);
        check::<8>(edges);
    }
}

#[test]
fn words_and_nibbles() {
    for edges in [Edges::Rising, Edges::Both] {
        let (mut four, record) = port::<4>(edges);
        four.word(0x89ab_cde1).unwrap();
        four.nibble(0x35).unwrap();
        assert_eq!(nibbles(&record, 4, edges), [1, 14, 13, 12, 11, 10, 9, 8, 5]);
        let (mut eight, record) = port::<8>(edges);
        eight.word(0x89ab_cde1).unwrap();
        eight.nibble(0x35).unwrap();
        assert_eq!(nibbles(&record, 8, edges), [0xe1, 0xcd, 0xab, 0x89, 0x35]);
    }
}

/// A pin that fails when it is set high.
struct Broken;

#[derive(Debug, PartialEq)]
struct Stuck;

impl embedded_hal::digital::Error for Stuck {
    fn kind(&self) -> embedded_hal::digital::ErrorKind {
        embedded_hal::digital::ErrorKind::Other
    }
}

impl ErrorType for Broken {
    type Error = Stuck;
}

impl OutputPin for Broken {
    fn set_low(&mut self) -> Result<(), Stuck> {
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Stuck> {
        Err(Stuck)
    }
}

#[test]
fn a_pin_that_fails_is_reported() {
    let mut port = Port::new([Broken, Broken, Broken, Broken], Broken, Edges::Rising)
        .ok()
        .unwrap();
    assert_eq!(port.nibble(0), Err(Error::Pin(Stuck)));
    let (_data, _strobe) = port.release();
}
