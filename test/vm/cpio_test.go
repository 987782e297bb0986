package vm

import (
	"bytes"
	"fmt"
)

// cpio is the archive of the first file system, in the form "newc" of the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst.
type cpio struct {
	out  bytes.Buffer
	next int
}

// Types of files, in their modes.
const (
	cpioDir    = 0o040000
	cpioFile   = 0o100000
	cpioDevice = 0o020000 // a character device
)

func (c *cpio) add(name string, mode int, data []byte, major, minor int) {
	c.next++
	fmt.Fprintf(&c.out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		c.next, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0)
	c.out.WriteString(name)
	c.out.WriteByte(0)
	c.pad()
	c.out.Write(data)
	c.pad()
}

func (c *cpio) pad() {
	for c.out.Len()%4 != 0 {
		c.out.WriteByte(0)
	}
}

func (c *cpio) dir(name string)                      { c.add(name, cpioDir|0o755, nil, 0, 0) }
func (c *cpio) file(name string, mode int, b []byte) { c.add(name, cpioFile|mode, b, 0, 0) }
func (c *cpio) device(name string, major, minor int) {
	c.add(name, cpioDevice|0o600, nil, major, minor)
}
func (c *cpio) end() []byte { c.add("TRAILER!!!", 0, nil, 0, 0); return c.out.Bytes() }
