package audit

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var sample = Record{
	Kind: KindPackage, Outcome: Served, Run: "run-7f3k2m", Sandbox: "sb-1", Ecosystem: "python", Package: "requests",
	RequestedVersion: ">=2.31", InstalledVersion: "2.31.0", File: "requests-2.31.0-py3-none-any.whl", SourceURL: "https://files.example/requests.whl",
	SHA256: "58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f", Size: 62574, ResolvedBy: "allowlist", Rule: "allowed_packages.python.requests",
}

func BenchmarkBareFdatasync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 600)
	off := int64(0)
	for b.Loop() {
		if _, err := f.WriteAt(line, off); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		off += int64(len(line))
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		if _, err := l.Append(b.Context(), sample); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend64Writers(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	work := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range work {
				if _, err := l.Append(b.Context(), sample); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkAppendOwned appends what BenchmarkAppend does, with whose run it is.
func BenchmarkAppendOwned(b *testing.B) {
	l, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	owned := sample
	owned.User, owned.Token = "ann", "tk_7f3k2m"
	for b.Loop() {
		if _, err := l.Append(b.Context(), owned); err != nil {
			b.Fatal(err)
		}
	}
}
