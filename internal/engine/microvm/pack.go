package microvm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// packMagic begins a packed disk: the parts of a sparse file that are there, so that what is
// sealed and verified is what was written and not the whole of what could be. After it come
// the file's size, then parts of an offset, a length and as many bytes, and a part of no
// length at the end; numbers have eight bytes, little-endian.
const packMagic = "cofferdam disk 1"

// pack writes a packed disk.
func pack(from, to string) error {
	disk, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // the monitor may have put anything there
	if err != nil {
		return err
	}
	defer disk.Close()
	info, err := disk.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fault.New(fault.ErrUnavailable, "%s is no disk any more", from)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 256<<10)
	_, err = out.WriteString(packMagic)
	if err == nil {
		err = number(out, info.Size())
	}
	for at := int64(0); err == nil && at < info.Size(); {
		at, err = packPart(disk, out, at, info.Size())
	}
	if err == nil {
		err = errors.Join(number(out, info.Size()), number(out, 0), out.Flush(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("copy the disk %s: %w", from, err)
	}
	return nil
}

// packPart writes the next part from at on, and returns where it ends.
func packPart(disk *os.File, out io.Writer, at, size int64) (int64, error) {
	begin, err := unix.Seek(int(disk.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, nil // nothing more
	}
	if err != nil {
		return 0, err
	}
	end, err := unix.Seek(int(disk.Fd()), begin, unix.SEEK_HOLE)
	if err != nil {
		return 0, err
	}
	end = min(end, size)
	if err := errors.Join(number(out, begin), number(out, end-begin)); err != nil {
		return 0, err
	}
	_, err = io.Copy(out, io.NewSectionReader(disk, begin, end-begin))
	return end, err
}

func number(out io.Writer, n int64) error { return binary.Write(out, binary.LittleEndian, n) }

// unpack makes a sparse file of a packed disk.
func unpack(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	disk, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := unpackInto(bufio.NewReaderSize(f, 256<<10), disk); err != nil {
		return fmt.Errorf("copy the disk %s: %w", from, err)
	}
	return disk.Close()
}

func unpackInto(in io.Reader, disk *os.File) error {
	magic := make([]byte, len(packMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != packMagic {
		return fault.New(fault.ErrConflict, "it is no packed disk")
	}
	var size int64
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return err
	}
	if size < 0 {
		return fault.New(fault.ErrConflict, "it says that it has %d bytes", size)
	}
	if err := disk.Truncate(size); err != nil {
		return err
	}
	for last := int64(0); ; {
		var part struct{ At, Length int64 }
		if err := binary.Read(in, binary.LittleEndian, &part); err != nil {
			return err
		}
		if part.Length == 0 {
			return nil
		}
		if part.At < last || part.Length < 0 || part.Length > size-part.At {
			return fault.New(fault.ErrConflict, "it has a part of %d bytes at %d", part.Length, part.At)
		}
		if n, err := io.Copy(io.NewOffsetWriter(disk, part.At), io.LimitReader(in, part.Length)); err != nil || n != part.Length {
			return errors.Join(err, fmt.Errorf("it ends after %d of %d bytes at %d", n, part.Length, part.At))
		}
		last = part.At + part.Length
	}
}
