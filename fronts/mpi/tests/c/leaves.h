/* For programs that leave calls of the library by a jump or a throw. Such a call keeps what it had, since
 * nobody can know that its frame is not come back to (docs/mpi.md). The sanitizer of addresses shall not tell of
 * that, and of nothing else less: it asks the program by this function. */
#ifdef __cplusplus
extern "C"
#endif
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void) { return "leak:steps::Steps<*>>::new\n"; }
