package main

import (
	"context"
	"net"
	"net/http"
	"time"
)

// serveFiles runs inside a sandbox: it is the plain static server that clients are measured
// against, at the first address without TLS and at the second with. No decision, no record.
func serveFiles(ctx context.Context, dir, plain, secure, certificate string) error {
	server := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 2)
	for _, address := range []string{plain, secure} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		go func() {
			if address == plain {
				ended <- server.Serve(listener)
				return
			}
			ended <- server.ServeTLS(listener, certificate, certificate)
		}()
	}
	return <-ended
}
