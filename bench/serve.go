package main

import (
	"context"
	"net"
	"net/http"
	"time"
)

// serveFiles is what the bench does inside a sandbox: it is the plain static
// server that clients are measured against. The file system's own order of
// things: no TLS, no decision, no record.
func serveFiles(ctx context.Context, dir, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}
