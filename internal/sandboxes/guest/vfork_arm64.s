#include "textflag.h"

// func rawClone(flags, parentTID uintptr) (pid uintptr, errno syscall.Errno)
// Where to return to is in a register, which the kernel keeps.
TEXT ·rawClone(SB),NOSPLIT,$0-32
	MOVD	flags+0(FP), R0
	MOVD	ZR, R1 // the caller's stack
	MOVD	parentTID+8(FP), R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	$220, R8 // SYS_CLONE
	SVC
	CMN	$4095, R0
	BCC	made
	MOVD	ZR, pid+16(FP)
	NEG	R0, R0
	MOVD	R0, errno+24(FP)
	RET
made:
	MOVD	R0, pid+16(FP)
	MOVD	ZR, errno+24(FP)
	RET
