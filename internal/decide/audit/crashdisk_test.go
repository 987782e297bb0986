package audit

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// crashDisk is a disk of which the power fails at call number at: that call does
// half of its work, and no later one does any. It writes through, so that the log
// can read what it wrote, and knows which bytes and names were durable.
type crashDisk struct {
	osDisk

	mu      sync.Mutex
	calls   int
	at      int
	inodes  map[string]*inode // by path, as the kernel has them
	durable map[string]*inode // by path, as the directories on the disk have them
}

// inode is a file's content as the kernel has it, and as the disk has it.
type inode struct{ now, durable []byte }

func newCrashDisk(at int) *crashDisk {
	return &crashDisk{at: at, inodes: map[string]*inode{}, durable: map[string]*inode{}}
}

// step counts a call; alive: it is done, dying: it is the one during which the
// power fails.
func (d *crashDisk) step() (alive, dying bool) {
	d.calls++
	return d.calls < d.at, d.calls == d.at
}

func (d *crashDisk) openFile(path string) (writable, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if alive, dying := d.step(); !alive && !dying {
		return nil, unix.EIO
	}
	f, err := d.osDisk.openFile(path)
	if err != nil {
		return nil, err
	}
	if d.inodes[path] == nil {
		d.inodes[path] = &inode{}
	}
	return &crashFile{writable: f, disk: d, inode: d.inodes[path]}, nil
}

func (d *crashDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if alive, dying := d.step(); !alive && !dying {
		return unix.EIO
	}
	if err := d.osDisk.rename(from, to); err != nil {
		return err
	}
	d.inodes[to] = d.inodes[from]
	delete(d.inodes, from)
	return nil
}

func (d *crashDisk) removeFile(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if alive, dying := d.step(); !alive && !dying {
		return unix.EIO
	}
	delete(d.inodes, path)
	return d.osDisk.removeFile(path)
}

func (d *crashDisk) syncDir(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if alive, _ := d.step(); !alive {
		return unix.EIO
	}
	d.durable = maps.Clone(d.inodes)
	return nil
}

// left makes the directory that is found after the crash.
func (d *crashDisk) left(dir string, names map[string]*inode, content func(*inode) []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, n := range names {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), content(n), 0o600); err != nil {
			return err
		}
	}
	return nil
}

type crashFile struct {
	writable
	disk  *crashDisk
	inode *inode
}

func (f *crashFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	alive, dying := f.disk.step()
	if dying {
		p = p[:len(p)/2]
	}
	if !alive && !dying {
		return 0, unix.EIO
	}
	if grow := int(off) + len(p) - len(f.inode.now); grow > 0 {
		f.inode.now = append(f.inode.now, make([]byte, grow)...)
	}
	copy(f.inode.now[off:], p)
	n, err := f.writable.WriteAt(p, off)
	if dying {
		err = unix.EIO
	}
	return n, err
}

func (f *crashFile) Datasync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if alive, _ := f.disk.step(); !alive {
		return unix.EIO
	}
	f.inode.durable = bytes.Clone(f.inode.now)
	return nil
}

func (f *crashFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if alive, dying := f.disk.step(); !alive && !dying {
		return unix.EIO
	}
	if int(size) <= len(f.inode.now) {
		f.inode.now = f.inode.now[:size:size]
	} else {
		f.inode.now = append(f.inode.now, make([]byte, int(size)-len(f.inode.now))...)
	}
	return f.writable.Truncate(size)
}

// halfWritten is a content of which the bytes that were not durable came to the
// disk in part: the length did, every other block did not.
func halfWritten(n *inode) []byte {
	const block = 128
	out := bytes.Clone(n.now)
	for at := range out {
		if (at/block)%2 == 0 && (at >= len(n.durable) || n.durable[at] != out[at]) {
			out[at] = 0
			if at < len(n.durable) {
				out[at] = n.durable[at]
			}
		}
	}
	return out
}
