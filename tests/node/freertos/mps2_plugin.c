/* A plugin for QEMU: after each store to the address `at=0x...` it writes the number of instructions executed before
   it to QEMU's log. QEMU's package has no header for plugins; these declarations are of its API, version 1. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { ADD_U64 };
enum { NO_REGISTERS };
enum { WRITES = 2 };
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int, void *, uint64_t);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), int, int,
                                      void *);
void qemu_plugin_outs(const char *);
int qemu_plugin_install(uint64_t, const void *, int, char **);

int qemu_plugin_version = 1;
static uint64_t executed, watched;

static void stored(unsigned cpu, uint32_t how, uint64_t at, void *unused)
{
    char line[40];
    (void)cpu, (void)how, (void)unused;
    if (at == watched) {
        snprintf(line, sizeof line, "after %" PRIu64 "\n", executed);
        qemu_plugin_outs(line);
    }
}

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
    size_t i;
    (void)id;
    for (i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(block, i);
        qemu_plugin_register_vcpu_insn_exec_inline(one, ADD_U64, &executed, 1);
        qemu_plugin_register_vcpu_mem_cb(one, stored, NO_REGISTERS, WRITES, NULL);
    }
}

int qemu_plugin_install(uint64_t id, const void *info, int count, char **arguments)
{
    int i;
    (void)info;
    for (i = 0; i < count; i++)
        if (strncmp(arguments[i], "at=", 3) == 0)
            watched = strtoull(arguments[i] + 3, NULL, 0);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
