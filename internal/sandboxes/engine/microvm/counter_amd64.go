package microvm

// counter is the processor's time stamp counter.
func counter() uint64
