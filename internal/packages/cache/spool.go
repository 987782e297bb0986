package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// spoolMemory is how many bytes a spool has in memory before they go to the
// disk. Most index pages are smaller.
const spoolMemory = 256 << 10

// Spool holds bytes for a while: in memory while they are few, else in a
// temporary file. It is for one goroutine at a time.
type Spool struct {
	store   *Store
	sum     hash.Hash
	pending []byte   // what is not in the file yet
	file    *os.File // nil: all is pending
	flushed int64    // bytes in the file
	check   int64    // size at which the free space is looked at next
}

// Spool makes an empty one. Close it.
func (s *Store) Spool() *Spool { return &Spool{store: s, sum: sha256.New()} }

// Write implements io.Writer.
func (p *Spool) Write(b []byte) (int, error) {
	p.pending = append(p.pending, b...)
	p.sum.Write(b)
	if len(p.pending) >= spoolMemory {
		if err := p.spillToFile(); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Reset begins again.
func (p *Spool) Reset() error {
	p.Close()
	p.sum.Reset()
	return nil
}

// Size is the number of bytes so far.
func (p *Spool) Size() int64 { return p.flushed + int64(len(p.pending)) }

// Digest is "sha256:<hex>" of the bytes so far.
func (p *Spool) Digest() string { return "sha256:" + hex.EncodeToString(p.sum.Sum(nil)) }

// Reader reads what was written so far. It is valid until the next call of
// Reset or Close.
func (p *Spool) Reader() (io.Reader, error) {
	if p.file == nil {
		return bytes.NewReader(p.pending), nil
	}
	if err := p.spillToFile(); err != nil {
		return nil, err
	}
	return io.NewSectionReader(p.file, 0, p.flushed), nil
}

// Close throws the bytes away.
func (p *Spool) Close() {
	if p.file != nil {
		// Nothing can be done about either error: Open clears what is left.
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
	p.file, p.pending, p.flushed, p.check = nil, nil, 0, 0
}

// spillToFile writes what is pending to the file. If there is none yet and it can't
// be made, all stays in memory.
func (p *Spool) spillToFile() error {
	if p.flushed >= p.check {
		if err := p.store.checkSpace(int64(len(p.pending))); err != nil {
			return err
		}
		p.check = p.flushed + spaceEvery
	}
	if p.file == nil {
		f, err := os.CreateTemp(filepath.Join(p.store.dir, dirTemp), "page-")
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
		}
		p.file = f
	}
	n, err := p.file.WriteAt(p.pending, p.flushed)
	if err == nil {
		p.flushed += int64(n)
		p.pending = p.pending[:0]
		return nil
	}
	if p.flushed == 0 { // the file is of no use, and memory still has everything
		err = errors.Join(err, p.file.Close(), os.Remove(p.file.Name()))
		p.file = nil
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
}
