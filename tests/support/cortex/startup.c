/* Start of a firmware on QEMU's mps2 boards: vectors, floating-point unit, text to the host, ticks of the clock. */
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

extern int main(void);
extern void stack_top(void);
extern uint32_t data_from[], data_start[], data_end[], bss_start[], bss_end[];
void put(const char *text);
uint32_t ticks(void);
void reset(void);

/* Semihosting: an operation and its argument for the emulator. */
static void ask_host(uintptr_t operation, uintptr_t argument)
{
    register uintptr_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void put(const char *text)
{
    ask_host(0x04, (uintptr_t)text);
}

/* Ticks of the processor's clock since the start, up to 2^24. */
uint32_t ticks(void)
{
    return 0xFFFFFFu - REGISTER(0xE000E018u);
}

void reset(void)
{
    REGISTER(0xE000ED88u) |= 0xFu << 20; /* the floating-point unit */
    __asm__ volatile("dsb\n\tisb");
    for (uint32_t *from = data_from, *to = data_start; to < data_end; ++from, ++to) *to = *from;
    for (uint32_t *to = bss_start; to < bss_end; ++to) *to = 0u;
    REGISTER(0xE000E014u) = 0xFFFFFFu;
    REGISTER(0xE000E018u) = 0u;
    REGISTER(0xE000E010u) = 5u;
    while (REGISTER(0xE000E018u) == 0u) {
    }
    const int failed = main();
    ask_host(0x18, failed ? 0x20023u : 0x20026u);
    for (;;) {
    }
}

static void fault(void)
{
    put("fault\n");
    ask_host(0x18, 0x20023u);
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    stack_top, reset, fault, fault, fault, fault, fault,
};
