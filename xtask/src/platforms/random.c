/* bcryptprimitives.dll, from which the standard library of Rust takes random bytes. Wine 8
   has none. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PUCHAR bytes, SIZE_T count)
{
    return RtlGenRandom(bytes, (ULONG)count);
}
