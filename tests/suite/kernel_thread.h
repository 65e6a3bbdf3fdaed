// Which thread the kernel is, where kernel_host.c runs it.
extern unsigned suite_thread;
