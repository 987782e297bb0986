package microvm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// packMagic begins a packed disk: the parts of a sparse file that are something else than
// zeros, so that what is sealed and verified is what was written and not the whole of what
// could be. After it come the file's size, then parts of an offset, a length and as many bytes,
// and a part of no length at the end; numbers have eight bytes, little-endian.
const packMagic = "cofferdam disk 1"

// How much of a file is looked at, and of what size zeros are left out.
const (
	packAtOnce = 1 << 20
	packGrain  = 4 << 10
)

// packDisk writes a packed disk.
func packDisk(from, to string) error {
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
	return packFile(disk, info.Size(), to)
}

// packFile writes a packed disk of so many bytes of a file.
func packFile(disk *os.File, size int64, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 256<<10)
	_, err = out.WriteString(packMagic)
	if err == nil {
		err = writeNumber(out, size)
	}
	buffer := make([]byte, packAtOnce)
	for at := int64(0); err == nil && at < size; {
		at, err = packPart(disk, out, at, size, buffer)
	}
	if err == nil {
		err = errors.Join(writeNumber(out, size), writeNumber(out, 0), out.Flush(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", disk.Name(), err)
	}
	return nil
}

// packPart writes what of the next data there is, from at on, and returns where it ends.
func packPart(disk *os.File, out io.Writer, at, size int64, buffer []byte) (int64, error) {
	begin, err := unix.Seek(int(disk.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) || err == nil && begin >= size {
		return size, nil // nothing more
	}
	if err != nil {
		return 0, err
	}
	end, err := unix.Seek(int(disk.Fd()), begin, unix.SEEK_HOLE)
	if err != nil {
		return 0, err
	}
	end = min(end, size, begin-begin%packGrain+packAtOnce)
	data := buffer[:end-begin]
	if _, err := disk.ReadAt(data, begin); err != nil {
		return 0, err
	}
	return end, packData(out, begin, data)
}

// packData writes the parts of data, whose first byte is at an offset, that have something.
func packData(out io.Writer, at int64, data []byte) error {
	var zeros [packGrain]byte
	begin := -1 // of the part that is looked at; none
	for n := 0; n < len(data); n += packGrain {
		something := !bytes.Equal(data[n:min(n+packGrain, len(data))], zeros[:min(packGrain, len(data)-n)])
		if something && begin < 0 {
			begin = n
		}
		if !something && begin >= 0 {
			if err := writePart(out, at+int64(begin), data[begin:n]); err != nil {
				return err
			}
			begin = -1
		}
	}
	if begin < 0 {
		return nil
	}
	return writePart(out, at+int64(begin), data[begin:])
}

func writePart(out io.Writer, at int64, data []byte) error {
	if err := errors.Join(writeNumber(out, at), writeNumber(out, int64(len(data)))); err != nil {
		return err
	}
	_, err := out.Write(data)
	return err
}

func writeNumber(out io.Writer, n int64) error { return binary.Write(out, binary.LittleEndian, n) }

// unpack makes a sparse file of a packed disk.
func unpack(from, to string) error {
	disk, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := unpackTo(from, disk); err != nil {
		return err
	}
	return disk.Close()
}

// unpackTo writes a packed disk to a file that has nothing in it.
func unpackTo(from string, disk *os.File) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unpackInto(bufio.NewReaderSize(f, packAtOnce), disk); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

func unpackInto(in *bufio.Reader, disk *os.File) error {
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
		if err := unpackPart(in, disk, part.At, part.Length); err != nil {
			return err
		}
		last = part.At + part.Length
	}
}

// unpackPart writes what comes next, without another copy of it in between.
func unpackPart(in *bufio.Reader, disk *os.File, at, length int64) error {
	for done := int64(0); done < length; {
		if _, err := in.Peek(1); err != nil {
			return errors.Join(err, fmt.Errorf("it ends after %d of %d bytes at %d", done, length, at))
		}
		data, err := in.Peek(int(min(length-done, int64(in.Buffered()))))
		if err == nil {
			_, err = disk.WriteAt(data, at+done)
		}
		if err == nil {
			_, err = in.Discard(len(data))
		}
		if err != nil {
			return err
		}
		done += int64(len(data))
	}
	return nil
}
