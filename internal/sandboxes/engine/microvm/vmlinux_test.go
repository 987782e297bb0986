package microvm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// compressedKernel has a payload where a kernel for x86 has it.
func compressedKernel(payload []byte) []byte {
	head := make([]byte, 1024)
	head[atSectors] = 1
	copy(head[atMagic:], "HdrS")
	binary.LittleEndian.PutUint32(head[atPayload:], 8)
	binary.LittleEndian.PutUint32(head[atPayload+4:], uint32(len(payload)))
	return append(append(append(head, "12345678"...), payload...), "behind"...)
}

func TestKernelsAreUnpacked(t *testing.T) {
	plain := append([]byte(elfMagic), bytes.Repeat([]byte("kernel "), 1000)...)
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(plain)))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(plain)
	_ = w.Close()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	// An LZ4 block by hand: 11 literals, then the last 7 of them again and again, then an end.
	again := len(plain) - 11 - 5
	block := append([]byte{0xbf}, plain[:11]...)
	block = append(block, 7, 0)
	for more := again - 4 - 15; ; more -= 255 {
		if more < 255 {
			block = append(block, byte(more))
			break
		}
		block = append(block, 255)
	}
	block = append(append(block, 0x50), plain[len(plain)-5:]...)
	lz4 := append([]byte("\x02\x21\x4c\x18"), binary.LittleEndian.AppendUint32(nil, uint32(len(block)))...)
	lz4 = append(append(lz4, block...), length...)
	for name, payload := range map[string][]byte{"gzip": append(z.Bytes(), length...), "zstd": append(e.EncodeAll(plain, nil), length...), "lz4": lz4} {
		got, err := unpackKernel(compressedKernel(payload))
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(plain), err)
		}
		for _, at := range []int{9, 20, len(payload) / 2, len(payload) - 6} {
			bad := bytes.Clone(payload[:at])
			if got, err := unpackKernel(compressedKernel(bad)); err == nil && !bytes.Equal(got, plain) {
				t.Errorf("%s, cut at %d, is %d bytes", name, at, len(got))
			}
		}
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "no kernel": make([]byte, 4096), "an unknown way": compressedKernel([]byte("\xfd7zXZ\x00 and more")),
		"no ELF":          compressedKernel(e.EncodeAll([]byte("something else"), nil)),
		"a copy too far":  compressedKernel(append([]byte("\x02\x21\x4c\x18\x04\x00\x00\x00"), 0x10, 'a', 9, 0, 4, 0, 0, 0)),
		"a copy of none":  compressedKernel(append([]byte("\x02\x21\x4c\x18\x04\x00\x00\x00"), 0x10, 'a', 0, 0, 4, 0, 0, 0)),
		"literals beyond": compressedKernel(append([]byte("\x02\x21\x4c\x18\x02\x00\x00\x00"), 0xf0, 0xff, 4, 0, 0, 0)),
	} {
		if _, err := unpackKernel(bad); err == nil {
			t.Errorf("%s was unpacked", name)
		}
	}
}

// TestAKernelThatIsThere: a distribution's own is unpacked once.
func TestAKernelThatIsThere(t *testing.T) {
	k, err := findKernel(filepath.Join("..", "..", "..", "..", ".tools", "kernel"))
	if err != nil {
		t.Skipf("NOT TRIED with a distribution's kernel: %v", err)
	}
	dir := t.TempDir()
	path, err := fire{}.kernelImage(k, dir)
	if err != nil || !isELFFile(path) {
		t.Fatalf("%s, %v", path, err)
	}
	before, err := os.Stat(path)
	if err != nil || before.Size() < 10<<20 || before.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", before, err)
	}
	again, err := fire{}.kernelImage(k, dir)
	if err != nil || again != path {
		t.Errorf("%s, %v", again, err)
	}
	if after, err := os.Stat(again); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was unpacked again (%v)", err)
	}
	if _, err := k.loadModules(fire{}.modules()); err != nil {
		t.Errorf("its modules: %v", err)
	}
}
