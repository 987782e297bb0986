package microvm

import (
	"fmt"
	"io"
	"slices"
)

// The modes of what an archive may hold.
const (
	cpioDir  = 0o040000
	cpioFile = 0o100000
	cpioChar = 0o020000
)

// cpio writes an archive of the form "newc", which a kernel unpacks into its first root file
// system. Nothing is written after the first error, which Close returns.
type cpio struct {
	to    io.Writer
	inode int
	err   error
}

// cpioEntry is a file of an archive.
type cpioEntry struct {
	name         string // without a slash in front
	mode         int
	major, minor int // of a device
	data         []byte
}

// addEntry writes one entry; directories come before what they hold.
func (c *cpio) addEntry(e cpioEntry) {
	c.inode++
	links := 1
	if e.mode&cpioDir != 0 {
		links = 2
	}
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.inode, e.mode, 0, 0, links, 0, len(e.data), 0, 0, e.major, e.minor, len(e.name)+1, 0)
	c.writeData([]byte(header))
	c.writeData(padded([]byte(e.name+"\x00"), len(header)))
	c.writeData(padded(e.data, 0))
}

// Close ends the archive.
func (c *cpio) Close() error {
	c.addEntry(cpioEntry{name: "TRAILER!!!"})
	return c.err
}

func (c *cpio) writeData(data []byte) {
	if c.err == nil {
		_, c.err = c.to.Write(data)
	}
}

// padded ends at a multiple of four, after what comes before.
func padded(data []byte, before int) []byte {
	return append(slices.Clip(data), make([]byte, (4-(before+len(data))%4)%4)...)
}
