/* The start of a board of Arm's mps2 family in an emulator: the table of vectors, floating point
   switched on, and text and an end by semihosting. A board of your own has such a file from its
   vendor. */
#include <stdint.h>

extern char board_stack_top[];
int main(void);
void board_write(const char *text);
uint32_t board_ticks(void);
void board_start(void);

static int32_t semihosting(int32_t what, const void *with)
{
    register int32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_write(const char *text) { (void)semihosting(4, text); }

/* Ticks of the timer, which counts down from 2²⁴ - 1. */
uint32_t board_ticks(void) { return 0xffffff - *(volatile uint32_t *)0xe000e018; }

__attribute__((noreturn)) static void stop(void)
{
    (void)semihosting(0x18, (const void *)0x20026); /* the program ended by itself */
    for (;;) {}
}

__attribute__((noreturn)) static void fault(void)
{
    board_write("fault\n");
    stop();
}

void board_start(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* CPACR: the unit for floats */
    __asm__ volatile("dsb\n\tisb");
#endif
    *(volatile uint32_t *)0xe000e014 = 0xffffff; /* SysTick: from where, and on */
    *(volatile uint32_t *)0xe000e018 = 0;
    *(volatile uint32_t *)0xe000e010 = 5;
    main();
    stop();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    board_stack_top, (const void *)board_start, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault};
