package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// npmRegistry shows packuments and tarballs: those of the project, and the
// large ones that the bench makes up.
type npmRegistry struct {
	dir   string
	base  string // where clients find its tarballs
	files http.Handler

	mu    sync.Mutex
	large map[string][]byte // packuments as they are sent, by name
}

func newNpmRegistry(dir, base string) *npmRegistry {
	return &npmRegistry{dir: dir, base: base, files: http.FileServer(http.Dir(dir)), large: map[string][]byte{}}
}

// ServeHTTP implements http.Handler.
func (r *npmRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/")
	if strings.HasSuffix(name, ".tgz") {
		r.files.ServeHTTP(w, req)
		return
	}
	packed, err := r.packument(name)
	switch {
	case err != nil:
		http.Error(w, `{"error":"Not found"}`, http.StatusNotFound)
		return
	case !strings.Contains(req.Header.Get("Accept-Encoding"), "gzip"):
		http.Error(w, `{"error":"this registry packs what it sends"}`, http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("ETag", fmt.Sprintf(`"%s-%d"`, name, len(packed)))
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(packed))
}

// packument gives one as it is sent. A large one is made at the first call.
func (r *npmRegistry) packument(name string) ([]byte, error) {
	if strings.HasPrefix(name, largeName) {
		return r.largePackument(name)
	}
	packed, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name), "packument.json.gz"))
	if err != nil || r.base == npmBase {
		return packed, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	return pack(bytes.ReplaceAll(text, []byte(npmBase), []byte(r.base)))
}

func (r *npmRegistry) largePackument(name string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if packed, ok := r.large[name]; ok {
		return packed, nil
	}
	packed, err := pack(largePackument(name, r.base))
	if err == nil {
		r.large[name] = packed
	}
	return packed, err
}

// pack compresses as registries do.
func pack(text []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
