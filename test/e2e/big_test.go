package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/upstream/liar"
)

// localUpstream is the configuration of an installation whose registry is a
// server of the test's own.
func localUpstream(t *testing.T, l *liar.Server, name string) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, l.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	port := strings.TrimPrefix(l.Host(name), name+":")
	return fmt.Sprintf("upstreams:\n  - ecosystem: python\n    index: https://%s/simple/\n    address: 127.0.0.1:%s\n    ca_file: %s\nprobe_projects: [big]\n", name, port, ca)
}

// TestABigFileFromASlowUpstream: pip waits for a file that takes a while, and
// the memory of the gateway stays out of proportion to it.
func TestABigFileFromASlowUpstream(t *testing.T) {
	size, rate := int64(24<<20), int64(12<<20) // bytes, bytes a second
	if os.Getenv("COFFERDAM_LONG") != "" {
		size, rate = 1<<30, 10<<20
	}
	const host = "index.example"
	wheel, digest := bigWheel(t, size)
	l := liar.New(t, host)
	page := fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest)
	l.Script(host+"/simple/big/", liar.Body("text/html", []byte(page)))
	l.Script(host+"/files/big-1.0-py3-none-any.whl", paced(wheel, rate))

	in := start(t, localUpstream(t, l, host))
	env := in.create("debian", "name: big\nallowed_packages: { python: [ { name: big } ] }\ndefaults: { max_disk_mb: 8192, max_memory_mb: 2048 }\n")
	got := in.run(env, "python3", "-m", "pip", "install", "--no-cache-dir", "big")
	if got.Exit.Code != 0 || !strings.Contains(got.Stdout, "Successfully installed big-1.0") {
		t.Fatalf("pip ended with %+v\n%s\n%s", got.Exit, got.Stdout, got.Stderr)
	}
	sum := in.run(env, "python3", "-c", "import hashlib, big, pathlib; print((pathlib.Path(big.__file__).parent / 'blob').stat().st_size)")
	if strings.TrimSpace(sum.Stdout) != fmt.Sprint(size) {
		t.Errorf("the installed blob has %s bytes (%s), want %d", strings.TrimSpace(sum.Stdout), sum.Stderr, size)
	}
	if n := l.Count(host + "/files/big-1.0-py3-none-any.whl"); n != 1 {
		t.Errorf("the upstream was asked %d times for the file, want once", n)
	}
}

// bigWheel writes a wheel with one stored file of size bytes.
func bigWheel(t *testing.T, size int64) (path, digest string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "big.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	z := zip.NewWriter(io.MultiWriter(f, sum))
	for _, m := range [][2]string{
		{"big/__init__.py", "\n"},
		{"big-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: big\nVersion: 1.0\n"},
		{"big-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"big-1.0.dist-info/RECORD", "big/__init__.py,,\nbig/blob,,\nbig-1.0.dist-info/METADATA,,\nbig-1.0.dist-info/WHEEL,,\nbig-1.0.dist-info/RECORD,,\n"},
	} {
		w, err := z.Create(m[0])
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, m[1])
	}
	w, err := z.CreateHeader(&zip.FileHeader{Name: "big/blob", Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for i := range size / int64(len(block)) {
		block[0], block[1] = byte(i), byte(i>>8)
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path, hex.EncodeToString(sum.Sum(nil))
}

// paced sends a file at a rate, in bytes a second.
func paced(path string, rate int64) liar.Reply {
	return func(_ *liar.Server, w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer f.Close()
		info, _ := f.Stat()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", fmt.Sprint(info.Size()))
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := io.CopyN(w, f, rate/10); err != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	}
}
