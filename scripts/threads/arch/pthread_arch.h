// Where musl finds the control block of the thread that asks: among the thread's own variables.
extern _Thread_local struct __pthread __thread_control;

static inline uintptr_t __get_tp(void) { return (uintptr_t)&__thread_control; }

void __block_app_sigs(void*);
void __restore_sigs(void*);
