package agenthome

import (
	"fmt"
	"strings"
)

// Unseen is how many things a sandbox has that hold something of a home, or may, where nobody sees what that takes of the disk.
type Unseen struct {
	// Messages are descriptors in messages that nobody has received, of sockets that a process has
	// open. One that no process can still receive, over whatever chain of sockets, the kernel
	// throws away. Their sender may be another sandbox.
	Messages int
	// Mapped are files without a name that are mapped, of which nobody without root sees which they are.
	Mapped int
	// Sockets are Unix sockets that no process has as a descriptor. A message holds them, or a call that waits, or one
	// that is to be told about them. Another sandbox may have accepted one.
	Sockets int
	// Calls are threads in a system call that keeps a file for as long as it waits, also if that is closed meanwhile. Those of
	// which it can't be had again count from the second look on at which they are the same.
	Calls int
}

// String names them, as what somebody keeps; "" if there are none.
func (u Unseen) String() string {
	var all []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{u.Messages, "open files in messages that nobody has received"},
		{u.Mapped, "mapped files without a name"},
		{u.Sockets, "sockets that no process has open"},
		{u.Calls, "calls that wait and keep a file open"},
	} {
		if c.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(all, ", and ")
}
