package cgroup

// Controller is one thing that the kernel can limit.
type Controller string

// The controllers that a sandbox needs.
const (
	Memory Controller = "memory"
	CPU    Controller = "cpu"
	Pids   Controller = "pids"
)

// cpuacct counts cpu time under version 1, where the cpu controller may live
// in another hierarchy. It limits nothing.
const cpuacct Controller = "cpuacct"

// Controllers lists what Create limits, in a fixed order.
func Controllers() []Controller { return []Controller{Memory, CPU, Pids} }

// Limits of a group. Zero leaves a resource unlimited.
type Limits struct {
	MemoryBytes int64   // includes page cache and tmpfs; swap is not allowed on top
	CPU         float64 // of one CPU's time, 1.5 is one and a half
	Pids        int     // host processes and threads
	Weight      int     // of the processors' time beside others of the same parent; 100 is the kernel's own
}

// Stats is what a group uses now.
type Stats struct {
	MemoryBytes int64
	CPUNanos    int64
	Pids        int
}
