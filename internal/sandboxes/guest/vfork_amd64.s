#include "textflag.h"

// func rawClone(flags, parentTID uintptr) (pid uintptr, errno syscall.Errno)
TEXT ·rawClone(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ	flags+0(FP), DI
	MOVQ	$0, SI // the caller's stack
	MOVQ	parentTID+8(FP), DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$56, AX // SYS_CLONE
	POPQ	R12 // the child's calls overwrite where to return to; the kernel keeps R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JLS	made
	MOVQ	$0, pid+16(FP)
	NEGQ	AX
	MOVQ	AX, errno+24(FP)
	RET
made:
	MOVQ	AX, pid+16(FP)
	MOVQ	$0, errno+24(FP)
	RET
