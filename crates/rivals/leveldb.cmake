# LevelDB takes any compiler that is told to be silent for one that checks locks, which gcc is not.
set(HAVE_CLANG_THREAD_SAFETY OFF CACHE BOOL "")
