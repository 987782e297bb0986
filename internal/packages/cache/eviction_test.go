package cache_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
)

// TestNobodyWaitsForAnEviction: while old files go to make room for one sandbox's new file, the files
// of others are served from the cache.
func TestNobodyWaitsForAnEviction(t *testing.T) {
	const files, each = 80_000, 1 << 10
	dir := t.TempDir()
	seed := filepath.Join(dir, "seed")
	if err := os.WriteFile(seed, make([]byte, each), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 256 {
		if err := os.MkdirAll(filepath.Join(dir, "blobs", fmt.Sprintf("%02x", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range files {
		sum := sha256.Sum256(fmt.Append(nil, i))
		if err := linked(seed, blobPath(dir, "sha256:"+hex.EncodeToString(sum[:])), i); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir, cache.Limits{MaxBytes: files*each + 1<<20})
	others := put(t, s, []byte("what another sandbox is served"))
	if got := read(t, s, others); len(got) == 0 {
		t.Fatal("the control: it is not there")
	}
	left := func() (n int) {
		for i := range 256 {
			n += countFiles(t, filepath.Join(dir, "blobs", fmt.Sprintf("%02x", i)))
		}
		return n
	}
	before := left()
	w, err := s.Create(files*each, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, files*each-1)); err != nil {
		t.Fatal(err)
	}
	made := make(chan error, 1)
	go func() { made <- w.Commit() }()
	for left() >= before {
		select {
		case err := <-made:
			t.Fatalf("it was over before anybody looked: %v", err)
		default:
			runtime.Gosched()
		}
	}
	read(t, s, others)
	then := left()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	if end := left(); then <= end {
		t.Errorf("another sandbox's file was served only when the eviction of %d files was over", before-end)
	}
}

// linked makes a file of the seed's size; a seed has only so many names.
func linked(seed, path string, i int) error {
	if i%1000 == 0 {
		text, err := os.ReadFile(seed)
		if err != nil {
			return err
		}
		if err := os.Remove(seed); err != nil {
			return err
		}
		if err := os.WriteFile(seed, text, 0o600); err != nil {
			return err
		}
	}
	return os.Link(seed, path)
}
