package workspace

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

var errNoFile = errors.New("it is no regular file")

// openFile opens a regular file, and follows no link to it.
func openFile(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// sameContent compares a file below two directories.
func sameContent(a, b *os.Root, name string) (bool, error) {
	one, err := openFile(a, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = one.Close() }()
	other, err := openFile(b, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = other.Close() }()
	var bufs [2][64 << 10]byte
	for {
		n, err := io.ReadFull(one, bufs[0][:])
		m, failure := io.ReadFull(other, bufs[1][:])
		if n != m || !bytes.Equal(bufs[0][:n], bufs[1][:m]) {
			return false, nil
		}
		if isEnded(err) && isEnded(failure) {
			return true, nil
		}
		if err != nil || failure != nil {
			return false, errors.Join(err, failure)
		}
	}
}

func isEnded(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Texts are a path's file in the original and in the copy. One that is no regular file there, or
// is larger than so many bytes, is nil.
func (w *Workspace) Texts(name string, most int64) (original, copied []byte) {
	read := func(root *os.Root, err error) []byte {
		if err != nil {
			return nil
		}
		defer func() { _ = root.Close() }()
		text, whole, err := readSome(root, name, most)
		if err != nil || !whole {
			return nil
		}
		return text
	}
	return read(w.openOriginal()), read(w.openCopy())
}

// readSome reads a file up to a size; whole is false if there is more.
func readSome(root *os.Root, name string, most int64) (data []byte, whole bool, err error) {
	file, err := openFile(root, name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = file.Close() }()
	data, err = io.ReadAll(io.LimitReader(file, most+1))
	if int64(len(data)) > most {
		return data[:most], false, err
	}
	return data, true, err
}
