package mounts

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Blanks are empty file systems in a directory, one of each size that was asked for, of which
// disks are copies: a copy takes a tenth of the time of making one. The directory is root's
// alone. The zero value keeps none. Safe for concurrent use, also by several processes.
type Blanks struct {
	Dir string `json:"dir"`
}

// BlanksOf is where an installation keeps blanks: in its state directory, for all engines.
func BlanksOf(state string) Blanks { return Blanks{Dir: filepath.Join(state, "blanks")} }

// blankForm names what blanks have in common; another way to make them gets another name.
const blankForm = "ext4-1-"

// maxBlanks bounds how many sizes are kept, since each of them is somebody's wish.
const maxBlanks = 16

// Make makes a sparse file with an empty file system of an identity of its own.
func (b Blanks) Make(ctx context.Context, file string, bytes int64) error {
	blank, err := b.openBlank(ctx, bytes)
	if err != nil {
		return err
	}
	if blank == nil {
		return MakeDisk(ctx, file, bytes)
	}
	defer blank.Close()
	disk, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(copySparse(blank, disk, bytes), identify(disk, blank.Name()), disk.Close())
}

// openBlank opens the blank of a size, and makes it if there is none; nil if none is kept of that size.
func (b Blanks) openBlank(ctx context.Context, bytes int64) (*os.File, error) {
	if b.Dir == "" {
		return nil, nil
	}
	path := filepath.Join(b.Dir, fmt.Sprint(blankForm, bytes))
	blank, err := os.Open(path)
	if !errors.Is(err, os.ErrNotExist) {
		return blank, err
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return nil, err
	}
	kept, err := b.sweepKept()
	if err != nil || kept >= maxBlanks {
		return nil, err
	}
	return b.addBlank(ctx, path, bytes)
}

// sweepKept counts the blanks, and removes what is none: of another form, or left by one who was
// killed while making it.
func (b Blanks) sweepKept() (n int, err error) {
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), blankForm) {
			n++
			continue
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) < 2*formatTimeout {
			continue // somebody may be at it
		}
		if err := os.RemoveAll(filepath.Join(b.Dir, entry.Name())); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// addBlank makes a blank. Of two that are made at once the last stays; both are good.
func (b Blanks) addBlank(ctx context.Context, path string, bytes int64) (*os.File, error) {
	work, err := os.MkdirTemp(b.Dir, "new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) // what is left goes later
	made := filepath.Join(work, "disk")
	if err := MakeDisk(ctx, made, bytes); err != nil {
		return nil, err
	}
	file, err := os.Open(made)
	if err != nil {
		return nil, err
	}
	// A name is given to what is on the disk only.
	if err := errors.Join(file.Sync(), os.Rename(made, path)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// copySparse copies what a file holds, and leaves its holes.
func copySparse(from, to *os.File, bytes int64) error {
	if err := to.Truncate(bytes); err != nil {
		return err
	}
	for at := int64(0); at < bytes; {
		data, err := unix.Seek(int(from.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // only a hole is left
			return nil
		}
		if err != nil {
			return err
		}
		hole, err := unix.Seek(int(from.Fd()), data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(to, data), io.NewSectionReader(from, data, hole-data)); err != nil {
			return err
		}
		at = hole
	}
	return nil
}

// Places in the first 1024 bytes of an ext4 file system, which are behind as many of
// something else (the kernel's Documentation/filesystems/ext4, "Super Block").
const (
	superAt     = 1024
	superBytes  = 1024
	magicAt     = 0x38
	magic       = 0xef53
	featuresAt  = 0x60
	ownSeed     = 0x2000 // the checksums do not hang on the identity
	identityAt  = 0x68
	hashSeedAt  = 0xec
	identityLen = 16
	checksumAt  = 0x3fc
)

// identify gives a file system a new identity, which programs in a sandbox can see, and its
// directories another order. It is a copy of the blank at a path.
func identify(disk *os.File, blank string) error {
	super := make([]byte, superBytes)
	if _, err := disk.ReadAt(super, superAt); err != nil {
		return err
	}
	if binary.LittleEndian.Uint16(super[magicAt:]) != magic || binary.LittleEndian.Uint32(super[featuresAt:])&ownSeed == 0 {
		return fault.New(fault.ErrUnavailable, "the empty file system %s was damaged; remove that file, and it is made anew", blank)
	}
	_, _ = rand.Read(super[identityAt : identityAt+identityLen]) // it does not fail
	_, _ = rand.Read(super[hashSeedAt : hashSeedAt+identityLen])
	sum := ^crc32.Checksum(super[:checksumAt], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(super[checksumAt:], sum)
	_, err := disk.WriteAt(super, superAt)
	return err
}
