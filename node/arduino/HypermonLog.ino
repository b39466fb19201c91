/*
 * Log lines and text: an analogue input as a line of two values, whose format string stays on the host, and a text that
 * is longer than an event. The dictionary is made from the sketch's ELF file (Sketch > Export Compiled Binary):
 *
 *     hypermon dict app.toml --elf HypermonLog.ino.elf -o app-log.toml        app.toml: the line [logging]
 */
#include <HypermonNode.h>
#include <hypermon/log.h>

static const uint8_t pins[HM_PINS] = { 2, 3, 4, 5, 6 };    // data 0 to 3, strobe
static hm_port port;
static unsigned count;

void setup()
{
    static const char text[] = "HypermonLog has started";
    hm_arduino_open(&port, pins);
    hm_text(&port, text, sizeof text - 1);
}

void loop()
{
    HM_LOG(&port, "input %u: %d of 1023", count, analogRead(A0));
    count++;
    delay(500);
}
