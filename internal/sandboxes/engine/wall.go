package engine

import "slices"

// Wall is what stands between a sandbox and the host's kernel: the kind of an engine's
// isolation, as far as it is proved on this host.
type Wall string

// The walls, the weakest first.
const (
	WallNone       Wall = ""                  // isolates nothing: a test's
	WallContainer  Wall = "container"         // the host's kernel itself, behind namespaces and a filter
	WallEmulated   Wall = "emulated-machine"  // a kernel of its own on a machine in software, which was not made to keep anybody in
	WallUserKernel Wall = "user-space-kernel" // a kernel in user space, which was
	WallHardware   Wall = "hardware"          // a kernel of its own behind the processor's virtualization
)

// Strength orders walls: the greater, the stronger. One that is not known is as weak as none.
func (w Wall) Strength() int {
	return max(0, slices.Index([]Wall{WallNone, WallContainer, WallEmulated, WallUserKernel, WallHardware}, w))
}
