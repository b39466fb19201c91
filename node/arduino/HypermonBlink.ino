/*
 * The sketch Blink as a node: the LED and the board see the same. Event 1 has one byte: the LED's new state.
 * Pins 2 to 5 are the data, pin 6 is the strobe; all go to one port of the board, with its ground.
 */
#include <HypermonNode.h>

static const uint8_t pins[HM_PINS] = { 2, 3, 4, 5, 6 };
static hm_port port;

enum { LED_IS = 1 };

void setup()
{
    pinMode(LED_BUILTIN, OUTPUT);
    hm_arduino_open(&port, pins);
}

static void show(uint8_t state)
{
    digitalWrite(LED_BUILTIN, state);
    hm_event(&port, LED_IS, &state, 1);
}

void loop()
{
    show(HIGH);
    delay(500);
    show(LOW);
    delay(500);
}
