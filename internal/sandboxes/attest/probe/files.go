package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// systemFiles writes where the system's programs and settings are. Root of the sandbox
// may do so in some templates, in a layer of the sandbox's own: the host sees whether the
// template has it.
func systemFiles(task Task, say teller) {
	attempt := SystemFiles
	if os.Getuid() == 0 {
		attempt = Template
	}
	var said []string
	written := false
	for _, dir := range MarkedDirs() {
		mark := filepath.Join(dir, MarkName(task.Token))
		err := os.WriteFile(mark, []byte(task.Token), 0o600)
		if err != nil {
			said = append(said, dir+": "+reason(err))
			continue
		}
		written = true
		said = append(said, dir+": written")
		if attempt == SystemFiles {
			_ = os.Remove(mark) // of the other, the host looks for it
		}
	}
	if written && attempt == SystemFiles {
		say.tellGot(attempt, "%s", strings.Join(said, "; "))
		return
	}
	say.tellRefused(attempt, "%s", strings.Join(said, "; "))
}

// mounts writes to what is shown read-only.
func mounts(task Task, say teller) {
	var said []string
	for _, path := range task.ReadOnly {
		err := writeMark(path, MarkName(task.Token))
		if err == nil {
			say.tellGot(Mounts, "%s was written to", path)
			return
		}
		said = append(said, path+": "+reason(err))
	}
	if len(said) > 0 {
		say.tellRefused(Mounts, "%s", strings.Join(said, "; "))
	}
}

// writeMark makes a file in a directory, which it removes, or opens a file to write to it.
func writeMark(path, mark string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	mark = filepath.Join(path, mark)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	return os.Remove(mark)
}

// chunk is how much is written, or touched, at a time.
const chunk = 1 << 20

// fillDisk writes until it may not any more, or has a quarter more than there is.
func fillDisk(task Task, say teller) {
	f, err := somewhere(MarkName(task.Token) + "-*")
	if err != nil {
		say.tellGot(DiskLimit, "nothing could be written, so nobody knows: %v", err)
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	piece := make([]byte, chunk)
	for i := range piece {
		piece[i] = byte(i*7 + i>>8)
	}
	var written int64
	for written <= task.DiskBytes+task.DiskBytes/4 {
		n, err := f.Write(piece)
		written += int64(n)
		if err != nil {
			say.tellAttempt(DiskLimit, written > task.DiskBytes, fmt.Sprintf("%d MB of %d were written, then: %s", written>>20, task.DiskBytes>>20, reason(err)))
			return
		}
	}
	say.tellGot(DiskLimit, "%d MB of %d were written", written>>20, task.DiskBytes>>20)
}

// somewhere is a file in the root file system's writable layer.
func somewhere(name string) (*os.File, error) {
	f, err := os.CreateTemp("/var/tmp", name)
	if home, herr := os.UserHomeDir(); err != nil && herr == nil {
		return os.CreateTemp(home, name)
	}
	return f, err
}

func (t teller) tellAttempt(a Attempt, got bool, says string) {
	_ = t.out.Encode(Word{a, got, says}) // who reads it misses it
}

// memory touches a quarter more than there is. It says something only if that worked.
func memory(task Task, say teller) {
	var kept [][]byte
	var touched int64
	for touched <= task.MemoryBytes+task.MemoryBytes/4 {
		piece, err := unix.Mmap(-1, 0, chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			say.tellRefused(MemoryLimit, "%d MB of %d were had, then: %v", touched>>20, task.MemoryBytes>>20, err)
			return
		}
		for i := 0; i < len(piece); i += 512 {
			piece[i] = byte(i>>9) | 1 // no two pages need be alike, and none is zero
		}
		kept, touched = append(kept, piece), touched+chunk
	}
	say.tellGot(MemoryLimit, "%d MB of %d were used (%d pieces)", touched>>20, task.MemoryBytes>>20, len(kept))
}
