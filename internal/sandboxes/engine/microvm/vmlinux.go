package microvm

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// kernelImage is a kernel that is not compressed, which Firecracker boots alone: vmlinux-RELEASE
// beside the compressed one, or else what is in that, which is kept in a directory.
func (fire) kernelImage(k kernel, dir string) (string, error) {
	beside := filepath.Join(filepath.Dir(k.image), "vmlinux-"+k.release)
	if isELFFile(beside) {
		return beside, nil
	}
	if isELFFile(k.image) {
		return k.image, nil
	}
	packed, err := os.ReadFile(k.image)
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the kernel %s can't be read", k.image)
	}
	sum := sha256.Sum256(packed)
	path := filepath.Join(dir, "vmlinux-"+hex.EncodeToString(sum[:8]))
	if isELFFile(path) {
		return path, nil
	}
	data, err := unpackKernel(packed)
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the kernel %s can't be unpacked, and Firecracker boots no other; put an unpacked one there as %s", k.image, filepath.Base(beside))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // monitors' users pass through
		return "", err
	}
	return path, atomicfile.ReplaceVolatile(path, data, 0o644)
}

const elfMagic = "\x7fELF"

func isELFFile(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, len(elfMagic))
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == elfMagic
}

// Where the begin of a compressed kernel for x86 says what is in it.
const (
	atSectors = 0x1f1 // how many of 512 bytes are before the protected-mode part, without the first
	atMagic   = 0x202
	atPayload = 0x248 // an offset in that part, and a length

	mostKernel = 512 << 20
)

// unpackKernel unpacks the ELF image in a compressed kernel.
func unpackKernel(packed []byte) ([]byte, error) {
	if len(packed) < atPayload+8 || string(packed[atMagic:atMagic+4]) != "HdrS" {
		return nil, errors.New("it is no kernel for x86")
	}
	begin := (int64(packed[atSectors]) + 1) * 512
	begin += int64(binary.LittleEndian.Uint32(packed[atPayload:]))
	length := int64(binary.LittleEndian.Uint32(packed[atPayload+4:]))
	if begin+length > int64(len(packed)) || length < 8 {
		return nil, errors.New("it is cut off")
	}
	data, err := inflate(packed[begin : begin+length])
	if err == nil && !bytes.HasPrefix(data, []byte(elfMagic)) {
		err = errors.New("what is in it is no ELF image")
	}
	return data, err
}

// inflate undoes the compressions that kernels have.
func inflate(data []byte) ([]byte, error) {
	all := func(from io.Reader, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		out, err := io.ReadAll(io.LimitReader(from, mostKernel))
		if len(out) > 0 && bytes.HasPrefix(out, []byte(elfMagic)) {
			err = nil // behind the compressed image is its length, which is no part of it
		}
		return out, err
	}
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			z.Multistream(false)
		}
		return all(z, err)
	case bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(bytes.NewReader(data))
		if err == nil {
			defer z.Close()
		}
		return all(z, err)
	case bytes.HasPrefix(data, []byte("BZh")):
		return all(bzip2.NewReader(bytes.NewReader(data)), nil)
	case bytes.HasPrefix(data, []byte("\x02\x21\x4c\x18")):
		return decompressLZ4(data[4:])
	}
	return nil, fmt.Errorf("it is compressed in a way that is not known here (% x)", data[:4])
}

// decompressLZ4 undoes the form that kernels have: blocks, each after its length. The last four bytes
// are the image's length.
func decompressLZ4(data []byte) ([]byte, error) {
	var out []byte
	for len(data) > 4 {
		n := int64(binary.LittleEndian.Uint32(data))
		if n == 0 || n > int64(len(data)-4) {
			break
		}
		var err error
		if out, err = unLZ4Block(out, data[4:4+n]); err != nil {
			return nil, err
		}
		data = data[4+n:]
	}
	if len(data) < 4 || uint32(len(out)) != binary.LittleEndian.Uint32(data[len(data)-4:]) {
		return nil, errors.New("it has another length than it says")
	}
	return out, nil
}

var errBlock = errors.New("a compressed block is damaged")

// unLZ4Block appends a block's bytes: runs of literals, each followed by a copy of what came
// before.
func unLZ4Block(out, in []byte) ([]byte, error) {
	start := len(out)
	length := func(n int) (int, bool) {
		for more := n == 15; more; {
			if len(in) == 0 || n > mostKernel {
				return 0, false
			}
			n += int(in[0])
			more = in[0] == 255
			in = in[1:]
		}
		return n, true
	}
	for len(in) > 0 {
		token := in[0]
		in = in[1:]
		n, ok := length(int(token >> 4))
		if !ok || n > len(in) || len(out)+n > mostKernel {
			return nil, errBlock
		}
		out, in = append(out, in[:n]...), in[n:]
		if len(in) == 0 {
			return out, nil
		}
		if len(in) < 2 {
			return nil, errBlock
		}
		back := int(binary.LittleEndian.Uint16(in))
		in = in[2:]
		n, ok = length(int(token & 15))
		if n += 4; !ok || back == 0 || back > len(out)-start || len(out)+n > mostKernel {
			return nil, errBlock
		}
		for at := len(out) - back; n > 0; n-- {
			out = append(out, out[at])
			at++
		}
	}
	return out, nil
}
