package selftest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// registry serves the three packages on the loopback and counts what it sends.
type registry struct {
	mu       sync.Mutex // guards the releases' counts
	releases map[string]*Release
	server   *httptest.Server
}

// openRegistry listens on a port of the kernel's choice.
func openRegistry(ctx context.Context, releases map[string]*Release) (*registry, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &registry{releases: releases}
	r.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}}
	r.server.Start()
	return r, nil
}

func (r *registry) address() string { return r.server.Listener.Addr().String() }

func (r *registry) closeRegistry() { r.server.Close() }

// ServeHTTP answers for the index and the files; no package has a sidecar.
func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.releases {
		switch req.URL.Path {
		case "/simple/" + one.Name + "/":
			w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			_ = json.NewEncoder(w).Encode(makePage(one)) // a client that went away asks again
			return
		case strings.TrimPrefix(one.URL, "http://"+registryHost):
			one.Sent++
			w.Header().Set("Content-Type", "application/zip")
			_, _ = w.Write(one.Bytes)
			return
		}
	}
	http.NotFound(w, req)
}

func makePage(r *Release) map[string]any {
	return map[string]any{
		"meta": map[string]string{"api-version": "1.1"}, "name": r.Name, "versions": []string{version},
		"files": []map[string]any{{
			"filename": r.File, "url": r.URL, "hashes": map[string]string{"sha256": r.SHA256}, "size": len(r.Bytes),
			"upload-time": "2020-01-02T03:04:05Z",
		}},
	}
}
